package main

import (
	"github.com/pollen-ml/pollen/langevin"
)

// testSize is on how many images predictions are compared.
const (
	testSize = 1000
	classes  = 10
)

// posterior is what all methods sample, and by which of them.
type posterior struct {
	examples int // digits, the first ones
	batch    int // of samplers on minibatches
	network  string
	prior    langevin.Prior
	warm     bool // HMC begins at the networks of the row "deep ensemble"
	hmc      trajectories
	methods  []method

	stored []byte // the reference, as its write has it; nil is sampled each time
}

// posteriors are those to choose from, by their number of digits.
var posteriors = map[int]*posterior{perceptron.examples: &perceptron, convolutional.examples: &convolutional}
