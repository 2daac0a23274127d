// Package detector scores how unlike its training images an image is. A Detector compares an
// image with some training images in two ways: by statistics of the pixels, and by the features
// of all layers of the network under several posterior samples. Mahalanobis distances from all
// training images detect images that are far from them, and relative ones detect images that are
// near them but belong to no class. A detector is fitted on training images only, so that
// held-out images can calibrate its decisions.
//
// The features of all layers are used because the last layer discards what the classes do not need,
// and because entropies and logits come from a classifier that extrapolates.
package detector
