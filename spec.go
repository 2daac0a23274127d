package pollen

import (
	"strings"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/langevin"
	"github.com/pollen-ml/pollen/layers"
	"github.com/pollen-ml/pollen/optimizers"
)

// Spec says what is trained and how. Fields left out have defaults, some of which depend on the
// method; a field that has no effect with the method is an error. Its JSON is an object with the
// names of Settings.
type Spec struct {
	Network string            // of layers.Names or RegisterNetwork, or text for layers.Parse; default lenet-small
	Layers  layers.Sequential // a network of one's own, in the place of Network; with layers of one's own see RegisterNetwork
	Method  Method            // SGLD by default

	// Schedule is the learning rate on the mean loss by step; samplers' step size is this rate
	// divided by the number of examples. nil is the method's customary one, for few examples less.
	Schedule optimizers.Schedule

	Batch  int    // examples of a minibatch; 0 is 100, a tenth of fewer than 1000, and all for samplers of all data
	Epochs int    // passes over the data, burn-in included; 0 is 8, more for 1000 steps or a long BurnIn, of all data 2000, of NUTS 500 draws
	Chains int    // Markov chains, from different initial values; 0 is 1
	Seed   uint64 // of everything random
	Subset int    // train on that many of the examples, by datasets.Dataset.First; 0 is all
	Start  string // folder of a run at whose chains' last samples these chains begin, in turn, with another Seed by new noise; "" is at initial values

	Augment Augment // how training images are changed at random, which changes the posterior, too

	// FirstChain is the number of the first chain: parts of a run, such as the jobs of an array,
	// have the chains of these numbers in the whole run with this seed, to the bit.
	FirstChain int

	// BurnIn is epochs before the first sample, of each cycle if there are any; nil is 3/8 of them,
	// and 4/5 of a cycle's, whose last steps, the small ones, sample.
	BurnIn      *int
	Samples     int // of each chain at least, evenly spaced, or drawn at the end; passes of MC dropout; 0 is 10
	BurnInSteps int // of samplers on minibatches, in place of BurnIn; 0 is BurnIn's epochs
	Thinning    int // steps between their samples, in place of Samples; 0 follows from Samples

	// Keep bounds the samples of a chain that stay: when there are more, every other one goes, and
	// what stays is what a Thinning twice as long draws, to the bit and with its weights. 0 is all.
	Keep int

	Prior       *langevin.Prior           // of each parameter; nil is Gaussian(0.316)
	Priors      map[string]langevin.Prior // of some layers or parameters, in the place of Prior
	Temperature *float64                  // of the posterior; nil is 1

	// Weights says what samples weigh in averages: Equal, or StepSize, that of the step they were
	// drawn at, by which a decreasing schedule has the least bias (Teh, Thiery and Vollmer 2016);
	// "" is StepSize, and Equal with cycles, as their paper has it.
	Weights Weighting

	Cycles       int       // each explores at temperature 0 in its burn-in, then samples; 0 is none
	Anchor       int       // epochs from one anchor of control variates to the next; 0 is none
	Symmetric    bool      // minibatches: every second epoch has those of the one before, backwards
	Temperatures []float64 // replica exchange: rising, the samples' first; a chain becomes as many
}

// Weighting says what samples weigh.
type Weighting string

// The weightings.
const (
	Equal    Weighting = "equal"
	StepSize Weighting = "step-size"
)

// cycleEpochs is how many epochs burn-in is a part of: those of a cycle, if there are cycles.
func (s Spec) cycleEpochs() int {
	if s.Cycles > 0 {
		return s.Epochs / s.Cycles
	}
	return s.Epochs
}

// temperature is the noise's: none for optimizers and approximations.
func (s Spec) temperature() float64 {
	if s.Temperature == nil {
		return 0
	}
	return *s.Temperature
}

// isNetworkFile reports whether a network is given as the text of a file rather than by name.
func isNetworkFile(text string) bool { return strings.ContainsAny(text, "\n{[:") }

// ownNetworks are those of RegisterNetwork.
var ownNetworks = map[string]layers.Sequential{}

// RegisterNetwork gives a network of one's own a name for Spec.Network: one whose layers are not
// those of package layers, such as an adopted stock.Network. A program that opens the run again
// must register it, too, at its start. A name that is taken is an error.
func RegisterNetwork(name string, network layers.Sequential) error {
	if name == "" || isNetworkFile(name) || strings.ContainsAny(name, ", ") || len(network) == 0 {
		return invalid("register: network %q of %d layers, wants a word and a layer at least", name, len(network))
	}
	if _, err := layers.New(name, 2); err == nil || ownNetworks[name] != nil {
		return invalid("register: there is a network %q already", name)
	}
	ownNetworks[name] = network
	return nil
}

// namedNetwork is the network with that name, or of that network file's text.
func namedNetwork(text string, classes int) (layers.Sequential, error) {
	if own := ownNetworks[text]; own != nil {
		return own, nil
	}
	if isNetworkFile(text) {
		return layers.Parse([]byte(text), classes)
	}
	return layers.New(text, classes)
}

// NetworkName is the name of the network; "network file" or "own layers" for one without.
func (s Spec) NetworkName() string {
	switch {
	case s.Layers != nil:
		return "own layers"
	case isNetworkFile(s.Network):
		return "network file"
	}
	return s.Network
}

// written is the specification with custom layers as the text of a network file.
func (s Spec) written() (Spec, error) {
	if s.Layers == nil {
		return s, nil
	}
	text, err := layers.Format(s.Layers)
	if err != nil {
		return s, InvalidError{errors.WithMessage(err, "pollen: a run keeps its network as text, or by the name that RegisterNetwork gives it")}
	}
	s.Network, s.Layers = string(text), nil
	return s, nil
}
