// Package langevin samples from Bayesian posteriors by Langevin dynamics on minibatches, with samplers that are update ops of the graph.
//
// Nouns. U(theta) = -log p(theta) - sum over i of log p(x_i | theta) is the potential of a Posterior, which knows the number of data N
// and the Prior. A Sampler attaches to every parameter an update whose stationary distribution is close to exp(-U/T), T the
// temperature of the whole posterior, prior included. A Plan says how long chains run, in cycles or not, and which states are kept as
// samples; it runs them with Interventions between steps: the Anchor of ControlVariates, the Replicas of ReplicaExchange.
//
// One convention: the step size h multiplies the gradient of U. The learning rate of deep-learning practice multiplies the gradient of
// the mean loss U/N instead: h = rate/N, see Posterior.StepSize. With the other common conventions, rate on the sum of the losses is h
// itself, and Welling and Teh's epsilon is 2h. Samplers with momentum have the same h, the square of the time step of physics; they move
// as SGLD does at the step size h divided by their friction.
//
// Policy: temperature is a checked quantity. The noise's scale sqrt(2 h T G) is computed in one place, NoiseScale, N cannot be left out,
// and every run records what package diagnostics makes its configurational temperature of.
package langevin
