// Package pollen trains Bayesian convolutional networks and asks them what they do not know.
//
// Fit trains a network, as a Spec says, on the images of package datasets and keeps its samples of
// the posterior in a folder: a Run. Open opens it again, Resume goes on with one that was stopped.
// A Run answers for new images (Predict), with a prediction set and whether they are familiar, and
// is scored on labelled ones (Assess). A Method is how it is trained: an optimizer of package
// optimizers, a sampler of langevin or metropolis, or an approximation of this package.
//
// A network is built from package layers, on a Gorgonia computation graph (graph); samplers and
// optimizers are update ops in the same graph, which is compiled once and runs on the host (tensor)
// or on GPUs (cuda). Command train does all of this from the command line. ARCHITECTURE.md says how
// the parts fit.
//
// Policy: the same specification, data and seed give the same samples, to the bit, however often a
// run was interrupted and whatever the number of threads. The package prints nothing and reads no
// clock; an Observer follows how a run goes.
package pollen
