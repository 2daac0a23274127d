// Package bayes trains Bayesian convolutional networks and reports how sure they are.
//
// A Spec describes what is trained and how: a network, a Method, and how long it runs. Fit trains
// it on the images of package datasets and writes a Run, a directory with samples of the posterior
// over the network's weights. Resume continues a run that was interrupted, and Open opens one.
//
// A Run predicts with the average over its samples, the posterior predictive. For each image,
// Predict returns an Answer: the most probable class with its probability, a conformal prediction
// set, and whether the image is in distribution. The latter two need held-out images for
// calibration. Assess scores a run on labelled images, and a Predictor keeps a run loaded, as
// servers need.
//
// A Method is an optimizer of package optimizers, a sampler of package langevin or mcmc, an
// approximation of this package such as Ensemble or SWAG, or a type of your own, see Register.
// Networks are built from package layers on a Gorgonia computation graph (package graph). Samplers
// and optimizers are update ops in the same graph, which is compiled once and runs on the host
// (package tensor) or on GPUs (package cuda); package devices opens either by name.
//
// The command cmd/pollen does all of this from the command line. ARCHITECTURE.md describes how the
// packages fit together, and docs/formats.md the files of a run.
//
// The same specification, data and seed give the same samples, bit for bit, no matter how often a
// run was interrupted and how many threads it had. The package prints nothing; an Observer follows
// the progress of a run. The clock is read only to measure the device's speed for Auto, to report
// progress and to date cached features, see WithClock.
package bayes
