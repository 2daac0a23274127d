// Package approximate fits distributions that stand for a posterior, and draws samples from them.
//
// Nouns. A MeanField is a distribution of independent normals, which BayesByBackprop fits with any
// optimizer. A SWAG is a Gaussian around the mean of an optimizer's states, a Laplace one around
// its last state, as wide as the curvature there says. All draw samples, which package samples
// stores and predicts with like any others.
//
// Policy: a draw is a function of the seed, the chain, the state and the draw's number.
package approximate
