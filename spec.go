package pollen

import (
	"strings"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/langevin"
	"github.com/pollen-ml/pollen/layers"
	"github.com/pollen-ml/pollen/optimizers"
)

// Spec describes what is trained and how. A field that is left out has a default, which may depend
// on the method and on the number of examples; Resolve fills the defaults in. A field that has no
// effect with the method is an error. The JSON of a Spec is an object with the names of Settings.
type Spec struct {
	// Network is a name of layers.Names or RegisterNetwork, or a text that layers.Parse reads. The
	// default is lenet-small. Layers is a custom network, instead of Network. If it contains custom
	// layers, use RegisterNetwork, so that the run can be opened again.
	Network string
	Layers  layers.Sequential

	Method Method // default langevin.SGLD

	// Schedule is the learning rate on the mean loss by step. The step size of a sampler is this
	// rate divided by the number of examples. The default is the method's customary schedule, with
	// lower rates for samplers on fewer than 10 000 examples.
	Schedule optimizers.Schedule

	// Batch is the number of examples of a minibatch. The default is 100, or a tenth of the data if
	// these are fewer than 1000. Samplers on all data use all examples.
	Batch int

	// Epochs is the number of passes over the data, burn-in included. The default is 8, or more
	// for 1000 steps, or more for a long BurnIn. For samplers on all data it is 2000, for NUTS
	// 500 draws.
	Epochs int

	Chains int    // Markov chains, from different initial values; default 1
	Seed   uint64 // of all random numbers
	Subset int    // number of examples to train on, chosen by datasets.Dataset.First; default all

	// Start is the directory of a run to start from: chain i begins at the last sample of that
	// run's chain i modulo the number of its chains. A Seed other than that run's gives new noise.
	// By default, chains begin at initial values.
	Start string

	// Augment changes training images at random, which also changes the posterior.
	Augment Augment

	// FirstChain is the number of the first chain. A run of many chains can be divided into runs of
	// a few, such as the jobs of an array, whose chains are the same bit for bit; see Gather.
	FirstChain int

	// BurnIn is the number of epochs before the first sample, or of each cycle if there are cycles.
	// The default is 3/8 of the epochs, or 4/5 of a cycle's, which leaves its last, small steps for
	// samples. BurnInSteps is the number of steps instead, for samplers on minibatches.
	BurnIn      *int
	BurnInSteps int

	// Samples is the least number of samples of each chain. They are evenly spaced, or drawn at the
	// end. For MC dropout it is the number of passes. The default is 10. Thinning is the number of
	// steps between samples instead, for samplers on minibatches.
	Samples  int
	Thinning int

	// Keep bounds the number of samples of each chain on disk. When there are more, every other one
	// is removed, and what remains are the samples, bit for bit and with their weights, of a run
	// with twice the Thinning. The default keeps all.
	Keep int

	Prior       *langevin.Prior           // of each parameter; default langevin.Gaussian(0.316)
	Priors      map[string]langevin.Prior // of some layers or parameters, instead of Prior
	Temperature *float64                  // of the posterior; default 1

	// Weights is how samples are weighted in averages. The default is StepSize, and Equal with
	// cycles, as in the paper that introduced them.
	Weights Weighting

	Cycles    int  // cycles, each of which explores at temperature 0 in its burn-in and then samples; default none
	Anchor    int  // epochs from one anchor of control variates to the next; default no control variates
	Symmetric bool // every second epoch has the minibatches of the one before in reverse order

	// Temperatures are those of replica exchange, rising from the temperature of the samples. Each
	// chain becomes one chain for each of them.
	Temperatures []float64
}

// Weighting is how samples are weighted in averages.
type Weighting string

// The weightings. With StepSize a sample has the weight of the step size at which it was drawn,
// which has the least bias with a decreasing schedule (Teh, Thiery and Vollmer 2016).
const (
	Equal    Weighting = "equal"
	StepSize Weighting = "step-size"
)

// cycleEpochs returns the number of epochs that burn-in is a part of: those of a cycle, if there
// are cycles.
func (s Spec) cycleEpochs() int {
	if s.Cycles > 0 {
		return s.Epochs / s.Cycles
	}
	return s.Epochs
}

// temperature returns the temperature of the noise, 0 for optimizers and approximations.
func (s Spec) temperature() float64 {
	if s.Temperature == nil {
		return 0
	}
	return *s.Temperature
}

// isNetworkFile reports whether a network is the text of a network file rather than a name.
func isNetworkFile(text string) bool { return strings.ContainsAny(text, "\n{[:") }

// ownNetworks are the networks of RegisterNetwork.
var ownNetworks = map[string]layers.Sequential{}

// RegisterNetwork gives a custom network a name for Spec.Network. A network whose layers are not
// those of package layers, such as a stock.Network, needs one, because a run keeps its network as
// text. A program that opens the run must register the network, too, before it does. It is an error
// if the name is taken or is not a word, or the network has no layers.
func RegisterNetwork(name string, network layers.Sequential) error {
	if name == "" || isNetworkFile(name) || strings.ContainsAny(name, ", ") || len(network) == 0 {
		return invalid("register: a network must have a word for a name and at least 1 layer, got %q and %d layers", name, len(network))
	}
	if _, err := layers.New(name, 2); err == nil || ownNetworks[name] != nil {
		return invalid("register: there is a network %q already", name)
	}
	ownNetworks[name] = network
	return nil
}

// namedNetwork returns the network with a name, or of a network file's text.
func namedNetwork(text string, classes int) (layers.Sequential, error) {
	if own := ownNetworks[text]; own != nil {
		return own, nil
	}
	if isNetworkFile(text) {
		return layers.Parse([]byte(text), classes)
	}
	return layers.New(text, classes)
}

// NetworkName returns the name of the network, or "network file" or "own layers" if it has none.
func (s Spec) NetworkName() string {
	switch {
	case s.Layers != nil:
		return "own layers"
	case isNetworkFile(s.Network):
		return "network file"
	}
	return s.Network
}

// written returns the specification with Layers as the text of a network file.
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
