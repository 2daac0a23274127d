// Command pollen trains Bayesian convolutional networks and evaluates them, in and out of
// distribution.
//
// "pollen --help" lists its commands. Without a command it trains one network on MNIST with SGD,
// SGLD, pSGLD and SGNHT, and prints how confident each is on digits and on letters. The Go API is
// package github.com/pollen-ml/pollen.
package main

import (
	"os"

	"github.com/pollen-ml/pollen/internal/command"
)

func main() { os.Exit(command.Main()) }
