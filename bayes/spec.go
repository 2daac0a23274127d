package bayes

import (
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/internal/pretrained"
	"github.com/pollen-ml/pollen/langevin"
	"github.com/pollen-ml/pollen/layers"
	"github.com/pollen-ml/pollen/optimizers"
)

// Spec describes what is trained and how. A field that is left out has a default, which may depend
// on the method and on the number of examples; Resolve fills the defaults in. A field that has no
// effect with the method is an error rather than ignored. The JSON of a Spec is an object with the
// names of Settings, such as {"method":"psgld","chains":4,"seed":1}.
//
// The zero Spec is complete: it trains lenet-small by the method that measurements recommend (see
// Method), in 8 epochs, or 1000 steps if that is more.
type Spec struct {
	// Network is a name of layers.Names or RegisterNetwork, or a text that layers.Parse reads. The
	// default is lenet-small. Layers is a custom network, instead of Network. If it contains custom
	// layers, use RegisterNetwork, so that the run can be opened again.
	//
	// Network may also be the path of an ONNX file, as model.onnx. The network is cut at a value
	// and gets a new head, as the next four fields specify. A run keeps a copy of the file.
	Network string
	Layers  layers.Sequential

	// Cut is the value of the ONNX file that the head reads, or the node that makes it. The default
	// is the input of the last fully connected layer, or the output of a network without one. The
	// value must be a vector [B D].
	Cut string

	// Head is the network after the cut: "linear", which is the default; "mlp:64" or "mlp:64-32",
	// with hidden layers of these widths; or a network as in Network.
	Head string

	// Freeze selects the weights of the ONNX file that keep their values: "all", which is the
	// default, "none", or names of weights or layers, separated by commas. A frozen weight is not a
	// parameter: it has no prior and no noise, and all chains share it. If all are frozen, the
	// features of an image at the cut are computed once.
	Freeze string

	// Input specifies how images are converted to the input of the ONNX file: imagenet, inception,
	// none, bytes, caffe, or a text such as "mean=0.5,std=0.25,order=bgr" for
	// (pixel/255 - mean)/std of the channels blue, green, red. The default follows the file's
	// metadata; if they do not describe the input, it is "imagenet".
	Input string

	// Method is an optimizer, a sampler or an approximation. The default is langevin.SGHMC, whose
	// chains sample at the end of one cycle after a warm start. Other fields then have these
	// defaults: Chains is 4 to 12, more for fewer images; Epochs is 10; Cycles is 1; WarmStart is
	// optimizers.Momentum at a high rate; Prior is langevin.Gaussian(0.6); Weights is Equal; and
	// Augment shifts images. Fields that are given keep their values, and exclude defaults that
	// they cannot be combined with: for example, there is no cycle with a Schedule, a BurnIn or
	// Keep. On fewer than 2500 images, a pilot determines Epochs: the cycle lasts for the number of
	// steps in which the warm start of the first chain reached its lowest loss, but at least 100
	// and at most 250. On more images, a pilot decides whether Augment also mirrors images. For the
	// head of a frozen ONNX network the default is Auto. If weights of an ONNX network are not
	// frozen, it is optimizers.Adam on shifted images, in 4 chains of 100 steps, or 5 epochs if
	// that is more, at a rate that rises to 0.0001 and then falls to 0.
	Method Method

	// Schedule gives the learning rate of each step, for the mean loss. The step size of a sampler
	// is this rate divided by the number of examples. The default is the method's customary
	// schedule, with lower rates for samplers on fewer than 10 000 examples.
	Schedule optimizers.Schedule

	// Batch is the number of examples in a minibatch. The default is 100, or a tenth of the data if
	// these are fewer than 1000. Samplers on all data use all examples.
	Batch int

	// Epochs is the number of passes over the data, burn-in included. The default is 8, or more if
	// 8 epochs have fewer than 1000 steps or BurnIn is long. It is 2000 for samplers on all data,
	// 500 draws for NUTS, and at least 60 for Distillation.
	Epochs int

	// Budget limits the time that the steps of Auto take. The default is 10 minutes. Auto converts
	// it to Epochs.
	Budget time.Duration

	// Chains is the number of Markov chains, which run in parallel from different initial values.
	// The default is 1, and 4 to 12 without a Method. Several are needed to see whether chains
	// agree, and Ensemble requires at least 2.
	Chains int

	// Seed determines all random numbers: initial values, the order of minibatches, noise.
	Seed uint64

	// Subset is the number of examples to train on, chosen by datasets.Dataset.First. The default
	// is all.
	Subset int

	// Start is the directory of a run to start from: chain i begins at the last sample of that
	// run's chain i modulo the number of its chains. A Seed other than that run's gives new noise.
	// By default, chains begin at initial values.
	Start string

	// Teacher is the directory of the run that Distillation learns from.
	Teacher string

	// WarmStart is an optimizer that each chain begins with. Sampling then starts from weights that
	// predict well instead of from initial values. This saves much of the burn-in, and lets chains
	// begin in different modes. It applies to samplers. The optimizer minimizes the mean loss,
	// without the prior, on four fifths of the training images, or all but about 1000 if that is
	// more, in minibatches and with the Augment of the run. After each epoch a chain is scored on
	// the rest of the training images, and sampling begins from the chain's best weights, or from
	// its initial values if it never predicted better than the frequencies of the classes. A chain
	// that diverges, there or while a cycle explores, goes back to its best weights, and its
	// learning rate is halved for the rest of the run. Sampling uses all training images, so that
	// the posterior is the same as without a warm start; samplers forget where they began, as far
	// as they mix. By default there is none if Method is given.
	//
	// WarmSchedule is the optimizer's learning rate by step, by default its customary one.
	// WarmEpochs is the maximum number of epochs of the warm start; by default it is 2, or 5
	// without a Method, or enough for 1000 steps if that is more. WarmPatience is the number of
	// epochs without a better score after which a chain stops: by default a fifth of WarmEpochs,
	// or, without a Method, the number of epochs that 200 steps take.
	WarmStart                optimizers.Optimizer
	WarmSchedule             optimizers.Schedule
	WarmEpochs, WarmPatience int

	// Augment changes training images at random, which also changes the posterior. By default
	// images are left unchanged if Method is given.
	Augment *Augment

	// ClassWeights weight the classes in the loss, which also changes the posterior.
	ClassWeights ClassWeights

	// FirstChain is the number of the first chain. A run with many chains can be divided into runs
	// with few, such as the jobs of a job array, whose chains are the same bit for bit: chains 4 to
	// 7 of a run with 8 equal those of a run with FirstChain 4 and Chains 4. See Gather.
	FirstChain int

	// BurnIn is the number of epochs before the first sample; with cycles, before the first sample
	// of each cycle. The default is 3/8 of the epochs, or 4/5 of a cycle (9/10 without a Method),
	// which leaves the last, small steps of the cycle for samples. BurnInSteps gives the length in
	// steps instead, for samplers on minibatches. BurnIn is a pointer because 0, no burn-in,
	// differs from the default.
	BurnIn      *int
	BurnInSteps int

	// Samples is the minimum number of samples of each chain. They are evenly spaced, or drawn at
	// the end; there may be more if the steps after burn-in are not a multiple of Samples. For MC
	// dropout it is the number of passes. The default is 10; without a Method it is 32 divided
	// among the chains, but at least 4 for each. Thinning gives the number of steps between samples
	// instead, for samplers on minibatches.
	Samples  int
	Thinning int

	// Keep bounds the number of samples of each chain on disk. When there are more, every other one
	// is removed. The remaining ones equal, bit for bit and with their weights, the samples of a
	// run with twice the Thinning. The default keeps all.
	Keep int

	// Prior is the prior of each parameter. The default is langevin.Gaussian(0.316), a standard
	// deviation of about sqrt(0.1), and langevin.Gaussian(0.6) without a Method. If weights of an
	// ONNX file are not frozen, it is a Gaussian around their values in the file,
	// langevin.Start(0.002) for samplers and langevin.Start(0.01) for approximations. Samples then
	// store the offsets from these values. The head, whose weights start at random, gets
	// langevin.Gaussian(0.316) instead, unless Priors has another.
	Prior *langevin.Prior

	// Priors overrides Prior for some layers or parameters, by name: "conv1" is all parameters of
	// that layer, "linear2.bias" is only one.
	Priors map[string]langevin.Prior

	// Temperature is the temperature T of the sampled distribution, proportional to exp(-U/T),
	// where U is the negative log posterior. The default is 1, the posterior itself; less than 1
	// gives a "cold posterior".
	Temperature *float64

	// Weights selects how averages weight samples. The default is StepSize, and Equal with cycles,
	// as in the paper that introduced them.
	Weights Weighting

	// Cycles is the number of cycles of cyclical sampling: each explores at temperature 0 during
	// its burn-in and then samples. The default is no cycles, and 1 without a Method.
	Cycles int

	// Anchor turns control variates on: it is the number of epochs from one anchor, a gradient over
	// all data, to the next. The default is no control variates.
	Anchor int

	// Symmetric makes every second epoch repeat the minibatches of the one before in reverse order.
	// By default, each epoch is shuffled independently.
	Symmetric bool

	// Temperatures turns replica exchange on. The list increases, as in 1, 1.02, 1.04; its first
	// entry is the temperature of the samples. Each chain becomes one replica for each temperature,
	// neighbours attempt to swap, and only the coldest replica yields samples.
	Temperatures []float64

	file *pretrained.File // the ONNX file that Network names; nil for other networks
}

// Weighting determines how averages weight samples.
type Weighting string

// The weightings. With StepSize a sample has the weight of the step size at which it was drawn,
// which has the least bias with a decreasing schedule (Teh, Thiery and Vollmer 2016).
const (
	Equal    Weighting = "equal"
	StepSize Weighting = "step-size"
)

// examplesOf returns the number of examples, of the given number, that a run trains on.
func (s Spec) examplesOf(all int) int {
	if s.Subset > 0 {
		return min(s.Subset, all)
	}
	return all
}

// cycleEpochs returns the number of epochs of a cycle or, without cycles, of the whole run.
func (s Spec) cycleEpochs() int {
	if s.Cycles > 0 {
		return s.Epochs / s.Cycles
	}
	return s.Epochs
}

// NoiseTemperature returns Temperature, or 0 for optimizers and approximations, which have none.
func (s Spec) NoiseTemperature() float64 {
	if s.Temperature == nil {
		return 0
	}
	return *s.Temperature
}

// replicasOfEach returns the number of session chains for each chain of the run: one for each
// temperature.
func (s Spec) replicasOfEach() int { return max(1, len(s.Temperatures)) }

// isNetworkFile reports whether a network is the text of a network file rather than a name.
func isNetworkFile(text string) bool {
	return !pretrained.IsONNX(text) && strings.ContainsAny(text, "\n{[:") || strings.HasPrefix(text, "-") || strings.HasPrefix(text, "#")
}

// ownNetworks has the networks that RegisterNetwork added. Like the registry of methods it has no
// lock: a program registers networks at its start, before other goroutines look up names.
var ownNetworks = map[string]layers.Sequential{}

// RegisterNetwork gives a custom network a name for Spec.Network. A network with layers that are
// not from package layers, such as a stock.Network, needs a name, because a run keeps its network
// as text. A program must also register the network before it opens the run. It is an error if the
// name is taken or is not a word, or the network has no layers.
func RegisterNetwork(name string, network layers.Sequential) error {
	if name == "" || isNetworkFile(name) || strings.ContainsAny(name, ", ") || len(network) == 0 {
		return invalid("register: a network must have a word for a name and at least 1 layer, got %q and %d layers", name, len(network))
	}
	if slices.Contains(network, nil) {
		return invalid("register: network %q must not have a nil layer", name)
	}
	if _, err := layers.New(name, 2); err == nil || ownNetworks[name] != nil {
		return invalid("register: there is a network %q already", name)
	}
	ownNetworks[name] = network
	return nil
}

// namedNetwork returns the network that text names, or that it describes as the content of a
// network file.
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
	case s.isPretrained():
		return filepath.Base(s.Network)
	case isNetworkFile(s.Network):
		return "network file"
	}
	return s.Network
}

// isPretrained reports whether the network is an ONNX file with a new head.
func (s Spec) isPretrained() bool { return s.Layers == nil && pretrained.IsONNX(s.Network) }

// written returns the specification with Layers as the text of a network file.
func (s Spec) written() (Spec, error) {
	if s.Layers == nil {
		return s, nil
	}
	text, err := layers.Format(s.Layers)
	if err != nil {
		return s, &InvalidError{errors.WithMessage(err, "pollen: a run keeps its network as text, or by the name that RegisterNetwork gives it")}
	}
	s.Network, s.Layers = string(text), nil
	return s, nil
}
