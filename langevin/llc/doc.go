// Package llc estimates the local learning coefficient of a model at a point of its parameter space
// (Lau, Furman, Wang, Murfet and Wei 2023): the rate at which the volume of the parameters with
// almost the same loss shrinks, which singular learning theory uses as an effective number of
// parameters at that point. It is half the number of parameters for a regular model, and less for a
// singular one, such as a neural network.
//
// # Terms
//
// L(w) is the mean loss of N examples, the negative log-likelihood, and w* the centre, a local
// minimum of L. Chains sample the tempered posterior, localized by a Gaussian around w*,
//
//	p(w) proportional to exp(-N beta L(w) - gamma/2 |w - w*|^2),    beta = 1/log N,
//
// where beta is the inverse temperature of Watanabe's WBIC (2013) and gamma the strength of the
// localization. The estimate is
//
//	lambda = N beta (E[L(w)] - L(w*)).
//
// In the terms of package langevin this is a posterior at the temperature T = log N, with the prior
// N(w*, 1/(gamma T)). The parameters of the graph are the offsets w - w*, as they are for
// langevin.Start.
//
// # Step sizes
//
// A step size is the epsilon of Lau et al. and of devinterp,
//
//	w <- w - epsilon/2 (N beta gL(w) + gamma (w - w*)) + N(0, epsilon),
//
// so that epsilon = 2hT for the step size h of package langevin. Large steps and the noise of
// minibatches add energy, which makes the estimate too large. With small steps chains do not reach
// equilibrium, which makes it too small. Estimate therefore returns a row for each step size of a
// grid, with measurements that distinguish the two, and Verdict names the row to use, or the reason
// why there is none.
package llc
