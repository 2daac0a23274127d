// Package detector scores how unlike its training images an image is. A Detector compares an image
// with some training images in two ways: by statistics of the pixels, and by the features of all
// layers of the network under several posterior samples. Mahalanobis distances from all training
// images detect what is far from them, and relative ones what is near them but belongs to no class.
// A detector is fitted on training images only, so that held-out images can calibrate its
// decisions.
//
// Features of all layers are used because the last layer forgets what the classes do not need, and
// entropies and logits are those of a classifier that extrapolates.
package detector
