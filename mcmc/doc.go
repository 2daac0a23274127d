// Package mcmc samples from exp(-U/T) with the potential U of all data, evaluated at every step.
// Its samplers either have no bias from their step size, because proposals are accepted or
// rejected, or have a bias that the user chooses.
//
// A Target is a potential U, a node of the graph, and a temperature. A Sampler attaches to it:
// Metropolis with the proposals RandomWalk, MALA or HMC, and Unadjusted with the dynamics MCLMC,
// are update ops of the graph; NUTS builds its trajectories on the host between two steps.
// Attaching returns Chains, whose Sample runs warm-up and draws, and returns langevin.Traces of the
// target's quantities. Everything that chains adapt is kept in the states of their session.
//
// Any density can be a target: -U/T is its logarithm, up to a constant. A formula is written with
// the ops of package op, and an array.Element is a coordinate of a vector. Package distributions
// has log densities and parameters with bounds; its Total negated is U. Chains start at the initial
// values of the parameters, which are the same for all chains, 0, unless Builder.Parameter is given
// an initializer. Start them apart, for example with the Fill of layers.Normal, so that R-hat shows
// whether they meet. Builder.OnHost compiles the graph and provides the session, and
// diagnostics.SummarizeTraces describes the draws.
//
// Energies are compared in float64. A sampler that is not exact has a name that shows it:
// Unadjusted.
package mcmc
