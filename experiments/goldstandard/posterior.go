package main

import "github.com/pollen-ml/pollen/langevin"

// testSize is the number of test images on which predictions are compared.
const (
	testSize = 1000
	classes  = 10
)

// posterior is a posterior with the methods that are compared on it.
type posterior struct {
	examples int // number of training digits, the first ones of MNIST
	batch    int // minibatch size of the samplers
	network  string
	prior    langevin.Prior
	warm     bool // HMC starts at the networks of the row "deep ensemble"
	hmc      trajectories
	methods  []method

	stored []byte // the reference as JSON; if nil, it is sampled each time
}

// trajectories has the settings of HMC for a posterior.
type trajectories struct {
	leaps         int
	warmup, draws int
}
