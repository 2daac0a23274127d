// Package layers builds networks out of ops: layers that create their parameters, distributions of
// initial values, a zoo of networks by name, and a summary of any network.
//
// Nouns. A Layer is a struct of attributes that maps a node to a node. Sequential and Residual make
// layers of layers. An Initializer is a distribution of a parameter's initial values. New gives a
// network of the zoo; Parse reads one from a file, and Format writes it; Check says whether a
// network fits its images; Summarize lists what a network holds and costs.
//
// Policy: a layer keeps nothing between calls. Applied to two builders, as for training and for
// prediction, a network makes the same parameters under the same names in the same order, so that
// values go from one to the other by name. A parameter is named by its layer and its part,
// "conv1.weight" and "conv1.bias"; a layer without a name is named by its kind and a number that
// the builder counts. What is wrong with a layer becomes the builder's error, which names the
// layer.
package layers
