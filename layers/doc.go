// Package layers provides the layers of neural networks, initializers of their parameters, a zoo of
// networks by name, and a format of network files.
//
// A Layer is a struct of attributes that maps a node to a node and creates its parameters.
// Sequential and Residual compose layers. New returns a network of the zoo; Parse reads
// one from a file, and Format writes it. Check reports whether a network fits its images; Summarize
// lists the layers with their parameters and floating-point operations.
//
// Layers are stateless: a network that is applied to two builders, such as one for training and one
// for prediction, makes the same parameters with the same names in the same order.
// samples.FromSession reads the values of one, and Sample.Put writes them into the other, by name.
// The parameters of a layer are called "conv1.weight" and "conv1.bias"; the default name of a layer
// is its kind and a number that the builder counts. The error of a layer becomes the builder's, and
// names the layer.
//
// A type of another package that implements Layer is applied like any other.
package layers
