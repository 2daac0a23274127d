// Package mcmc samples from exp(-U/T) by energies of all data: without a discretisation bias,
// by proposals that are accepted or rejected, or with one that their errors keep small.
//
// Nouns. A Target is a potential U of all data, a node of the graph, with a temperature. A Sampler
// attaches to it: Metropolis with the proposals RandomWalk, MALA or HMC as update ops of the graph,
// NUTS, whose trajectories are made from Go between two steps, or Unadjusted with the dynamics
// MCLMC, update ops again. Its Walk draws Traces of the target's quantities, and samples; what
// chains have learnt is in their session.
//
// Policy: energies are compared in float64. A sampler that is not exact says so in its name.
package mcmc
