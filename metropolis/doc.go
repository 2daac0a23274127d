// Package metropolis samples from exp(-U/T) without a discretisation bias, by proposals that are
// accepted or rejected.
//
// Nouns. A Target is a potential U of all data, a node of the graph, with a temperature. An Exact
// sampler attaches to it: Metropolis with the proposals RandomWalk, MALA or HMC as update ops of
// the graph, or NUTS, whose trajectories are made from Go between two steps. Its Walk draws Traces
// of the target's quantities, and samples; what chains have learnt is in their session.
//
// Policy: energies are compared in float64. A sampler that is not exact says so in its name.
package metropolis
