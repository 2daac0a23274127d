// Package samples keeps the states of chains and predicts by them.
//
// Nouns. A Sample is one state of one chain, with its weight in averages. A Bank is the folder of a run's samples. A Predictor computes the
// probabilities of Images under a sample, an InputGradient the gradient of their average by the pixels.
//
// Policy: probabilities are averaged, never their logarithms. A file of samples is written whole or not at all, and one from elsewhere is
// read with suspicion.
package samples
