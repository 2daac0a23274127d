// Package measure measures the chains of a run while they sample: traces and convergence,
// temperatures, the noise of minibatches' gradients, and the temperature of predictions.
//
// Measurements is what a run records from step to step; checkpoints keep it. The other measurements
// are made of a Subject: a network, a posterior, data and the session whose chains sample it.
package measure
