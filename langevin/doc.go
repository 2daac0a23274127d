// Package langevin samples from Bayesian posteriors by Langevin dynamics on minibatches, with
// samplers that are update ops of the graph.
//
// Nouns. U(theta) = -log p(theta) - sum over i of log p(x_i | theta) is the potential of a
// Posterior, which knows the number of data N and the Prior; gU is its gradient, a minibatch's in
// what follows. A Sampler attaches to every parameter an update whose stationary distribution is
// close to exp(-U/T), T the temperature of the whole posterior, prior included. A Plan says how
// long chains run and which states are samples; it runs them with Interventions between steps.
//
// One convention: the step size h multiplies gU. The learning rate of deep-learning practice
// multiplies the gradient of the mean loss: h = rate/N, see Posterior.StepSize. With a rate on the
// sum of the losses h is that rate, and Welling and Teh's epsilon is 2h. With momentum, h is the
// square of the time step of physics. xi is drawn from N(0, 1) in each step.
//
// No sampler has a Metropolis test, and none corrects for the noise of minibatches unless its
// comment says so.
//
// Policy: temperature is a checked quantity. The noise's scale is computed in one place,
// NoiseScale, N cannot be left out, and every run records what package diagnostics computes its
// temperature from.
package langevin
