// Package approximate fits distributions that approximate a posterior, and draws samples from them.
//
// A MeanField is a distribution of independent normals; BayesByBackprop fits it with any optimizer.
// A SWAG is a Gaussian around the mean of an optimizer's states. A LaplaceApproximation is a
// Gaussian around an optimizer's last state, whose covariance comes from the curvature there. All
// of them draw samples, which package samples stores and predicts with as if a Markov chain had
// drawn them.
//
// A draw is a function of the seed, the chain, the state and the number of the draw.
package approximate
