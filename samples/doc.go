// Package samples stores states of chains and predicts with them.
//
// Nouns. A Sample is one state of one chain, with its weight in averages. A Store is the folder of
// a run's samples. A Predictor computes the probabilities of Images under a sample, an
// InputGradient the gradient of -log of their average with respect to the pixels.
//
// Policy: probabilities are averaged, never their logarithms. A file of samples is written whole or
// not at all, and every file read is checked.
package samples
