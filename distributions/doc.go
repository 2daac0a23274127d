// Package distributions has probability distributions whose log densities are nodes of a graph, so
// that Builder.Gradients differentiates them, and bijections with which an unconstrained parameter
// represents a constrained one.
//
// A Value is a parameter of a distribution: a known number, or a node. A Distribution gives the log
// density of a node, element by element; a Reparameterised one also draws samples that gradients
// pass through. A Bijection maps one range of numbers to another, with the logarithm of its
// derivative: Transformed makes distributions with it, Constrained makes parameters, and Simplex
// makes vectors of probabilities. Total adds up the terms of a log posterior.
//
// Elements are independent, except within the vectors of a Dirichlet. Shapes broadcast as NumPy's
// do, and normalising constants are complete. Computations with numbers are done when the graph is
// built. A number that is out of range is the builder's error, as is a sample of another shape than
// requested. An argument outside the support of a density, and a node that is out of range, make
// the log density NaN, which stops a run.
//
// Beta and Dirichlet subtract values of ln Gamma. Rounding errors of their log densities are about
// 1e-7 of the largest of these in float32, and 1e-16 in float64: 0.1 and 1e-10 for a parameter of
// 100 000.
package distributions
