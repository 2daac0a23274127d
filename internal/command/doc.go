// Package command is the command line of the program pollen, which trains Bayesian convolutional
// networks and evaluates them in and out of distribution. cmd/pollen and cmd/train both call Main.
//
// Each command has a file. A command parses flags, calls package bayes and prints: results to
// stdout, progress and remarks to stderr. Anything that a Go program could use belongs in the
// library.
package command
