// Package pollen trains Bayesian convolutional networks by Langevin dynamics and asks them whether they know what they do not know.
//
// It holds no code: the packages below it do. A model is a Gorgonia computation graph made with packages graph and layers; samplers of packages
// langevin and metropolis and optimizers of package optimizers are update ops in the same graph; package tensor runs the compiled graph on
// the host. Package approximate fits what stands for a posterior, package samples keeps samples and predicts, package diagnostics checks.
// Command train does all of that from the command line. ARCHITECTURE.md tells how the parts fit.
package pollen
