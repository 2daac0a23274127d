// Package langevin samples from Bayesian posteriors with Langevin dynamics on minibatches. Its
// samplers are update ops of the graph.
//
// # Terms
//
// U(theta) = -log p(theta) - sum over i of log p(x_i | theta) is the potential of a Posterior,
// which holds the number N of training examples and the Prior. gU is the gradient of U, in what
// follows its estimate from a minibatch. A Sampler attaches to every parameter an update whose
// stationary distribution is close to exp(-U/T), where T is the temperature of the whole posterior,
// prior included. A Plan sets how long chains run and which of their states are samples. Plan.Run
// makes the steps and calls Hooks between them. Plan.Collect also returns Traces of the samples,
// which diagnostics.SummarizeTraces describes.
//
// For a density whose logarithm L is given as a whole, prior included, the loss is -L and the
// Posterior has DataSize 1 and no Prior: then U = -L, and a rate is h itself. Package mcmc has
// samplers without a bias for this case.
//
// # Attributes
//
// An attribute of 0 is 0, not a default, unless its comment gives it a meaning. The comments have
// the usual values, with which bayes.ParseMethod("sghmc") returns an SGHMC. docs/conventions.md has
// the customary rates.
//
// # Step sizes
//
// The step size h multiplies gU. The learning rate of deep learning multiplies the gradient of the
// mean loss: h = rate/N, see Posterior.StepSize. A rate on the sum of the losses is h itself, and
// Welling and Teh's epsilon is 2h. With momentum, h is the square of the time step of physics. In
// all formulae xi is drawn from N(0, 1) at each step.
//
// # What is not corrected
//
// No sampler has a Metropolis test, and none corrects for the noise of minibatches unless its
// comment states it. To catch wrong noise, temperature is a checked quantity: NoiseScale is the
// only function that computes the scale of the noise, N cannot be left out, and every run records
// the metrics for its temperature, which package diagnostics computes.
//
// # Samplers of other packages
//
// A type of another package that implements Sampler is attached like any other. It may also
// implement EffectiveStepSizer and Freezer. The program examples/sampler is a skeleton to copy, and
// a trial.GaussianTest tests that the sampler has the distribution that it should.
package langevin
