// Package samples stores samples of Markov chains and predicts with them.
//
//   - A [Sample] is one state of one chain, with its weight in posterior averages.
//   - A [Store] is the directory of a run's samples, one safetensors file each.
//   - A [SamplePredictor] computes the class probabilities of a fixed set of [Images] under one
//     sample after another; an [EnsemblePredictor] holds many samples at once, for images that
//     arrive a few at a time.
//   - An [InputGradient] computes the gradient of -log of the averaged probability with respect
//     to the pixels.
//
// The posterior predictive is an average of probabilities, never of their logarithms. A sample file
// is written whole or not at all, and every file is checked when it is read.
package samples
