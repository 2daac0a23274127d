package main

import (
	"slices"
	"strconv"
	"strings"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/approximate"
	"github.com/pollen-ml/pollen/langevin"
	"github.com/pollen-ml/pollen/layers"
	"github.com/pollen-ml/pollen/optimizers"
)

// rule is what the command line knows of a way to sample from a posterior or to approximate it. Optimizers, which find one solution, know
// their attributes themselves.
type rule struct {
	name     string
	schedule string    // of the learning rate, when none is given; "" for rules that find their own
	options  []string  // the flags that apply to this rule and not to all
	fields   string    // names of the attributes after a colon, in order
	defaults []float64 // of these
}

// The names of the rules that are treated apart from the others.
const (
	psgldName     = "psgld"
	fisherName    = "fsgld"
	kroneckerName = "ksgld"
	ensembleName  = "ensemble"
	dropoutName   = "mc-dropout"
	swagName      = "swag"
	backpropName  = "bbb"
)

// kroneckerRefresh is how many steps of burn-in are between two factorisations.
const kroneckerRefresh = 20

// dampings are the defaults of lambda.
var dampings = map[string]float64{psgldName: 1e-5, fisherName: 1e-3, kroneckerName: 0.1}

var (
	exactOptions    = []string{"prior", "temperature", "burn-in", "samples"}
	momentumOptions = append([]string{"cycles", "anchor"}, exactOptions...)
	samplerOptions  = append([]string{"temperatures"}, momentumOptions...)
)

// rules: samplers first, then approximations.
var rules = []rule{
	{"sgld", "constant:0.2", samplerOptions, "", nil},
	{psgldName, "constant:0.002", append([]string{"gamma", "alpha", "lambda"}, samplerOptions...), "", nil},
	{fisherName, "constant:0.0001", append([]string{"alpha", "lambda"}, samplerOptions...), "", nil},
	{kroneckerName, "constant:0.05", append([]string{"alpha", "lambda"}, samplerOptions...), "", nil},
	{"sghmc", "constant:0.02", momentumOptions, "FRICTION,NOISE_ESTIMATE", []float64{0.1, 0}},
	{"baoab", "constant:0.02", momentumOptions, "FRICTION", []float64{0.1}},
	{"sgnht", "constant:0.02", momentumOptions, "FRICTION", []float64{0.1}},
	{walkName, "", exactOptions, "", nil},
	{malaName, "", exactOptions, "", nil},
	{hamiltonianName, "", exactOptions, "LEAPS,JITTER", []float64{20, 0.2}},
	{ensembleName, "cosine:0.1,0", []string{"prior"}, "", nil},
	{dropoutName, "cosine:0.1,0", []string{"prior", "samples"}, "RATE", []float64{0.25}},
	{swagName, "constant:0.05", []string{"prior", "burn-in", "samples"}, "RANK", []float64{20}},
	{backpropName, "constant:0.001", []string{"prior", "samples"}, "INITIAL_DEVIATION", []float64{0.02}},
}

// smallModel is the network that the samplers' schedules above are for. The others are wider and get wideShare of these rates: at T = 1 weights grow
// towards their prior's size, and the more inputs a layer has the less its steps may then be.
const (
	smallModel = "lenet-small"
	wideShare  = 0.25
)

// defaultSchedule is the one of a configuration without any: in cycles, it begins each at twice the constant rate.
func (c Config) defaultSchedule() string {
	r := c.rule()
	if r == nil {
		return optimizerSchedules[c.samplerName()]
	}
	s, err := optimizers.ParseSchedule(r.schedule)
	constant, ok := s.(optimizers.Constant)
	if err != nil || !ok {
		return r.schedule
	}
	if c.isSampler() && c.Model != smallModel {
		constant.Rate *= wideShare
	}
	if c.Cycles != nil {
		return optimizers.Cyclical{Initial: 2 * constant.Rate, Cycles: *c.Cycles}.String()
	}
	return constant.String()
}

// rulesWith are the names of the rules to which a flag applies.
func rulesWith(option string) []string {
	var names []string
	for _, r := range rules {
		if slices.Contains(r.options, option) {
			names = append(names, r.name)
		}
	}
	return names
}

// samplerNames are the rules that sample at a temperature; approximationNames the other ones.
func samplerNames() []string { return rulesWith("temperature") }

func approximationNames() []string {
	var names []string
	for _, r := range rules {
		if !slices.Contains(r.options, "temperature") {
			names = append(names, r.name)
		}
	}
	return names
}

// samplerName is what comes before the attributes: "sghmc" of "sghmc:0.1".
func (c Config) samplerName() string {
	name, _, _ := strings.Cut(c.Sampler, ":")
	return name
}

// rule is nil for an optimizer.
func (c Config) rule() *rule {
	for i := range rules {
		if rules[i].name == c.samplerName() {
			return &rules[i]
		}
	}
	return nil
}

// uses tells whether a flag that does not apply to all rules applies to this one.
func (c Config) uses(option string) bool {
	r := c.rule()
	return r != nil && slices.Contains(r.options, option)
}

// isSampler tells whether chains sample at a temperature.
func (c Config) isSampler() bool { return c.uses("temperature") }

// attributes are those of a rule, after a colon.
func (c Config) attributes() ([]float64, error) {
	r := c.rule()
	_, rest, given := strings.Cut(c.Sampler, ":")
	values := slices.Clone(r.defaults)
	if !given {
		return values, nil
	}
	if len(values) == 0 {
		return nil, errors.Errorf("train: sampler %q: %s has no attributes after a colon", c.Sampler, r.name)
	}
	for i, text := range strings.Split(rest, ",") {
		v, err := strconv.ParseFloat(strings.TrimSpace(text), 64)
		if err != nil || i == len(values) {
			return nil, errors.Errorf("train: sampler %q: wants %s, or %s:%s, of which the last ones may be left out", c.Sampler, r.name, r.name, r.fields)
		}
		values[i] = v
	}
	return values, nil
}

// sampler is what moves the parameters of a configuration that has a rule and is filled; burnIn is in steps. Approximations descend by SGLD without
// noise, which is SGD on the potential.
func (c Config) sampler(burnIn int) (langevin.Sampler, error) {
	v, err := c.attributes()
	if err != nil {
		return nil, err
	}
	var s langevin.Sampler = langevin.SGLD{}
	switch c.samplerName() {
	case psgldName:
		p := langevin.PSGLD{Alpha: *c.Alpha, Lambda: *c.Lambda, Gamma: langevin.Gamma(*c.Gamma)}
		if p.Gamma == langevin.GammaFrozen {
			p.FreezeAt = max(1, burnIn)
		}
		s = p
	case fisherName:
		s = langevin.FisherSGLD{Alpha: *c.Alpha, Damping: *c.Lambda, FreezeAt: max(1, burnIn)}
	case kroneckerName:
		s = langevin.KSGLD{Alpha: *c.Alpha, Damping: *c.Lambda, Refresh: kroneckerRefresh, FreezeAt: max(1, burnIn), Rest: langevin.SGLD{}}
	case "sghmc":
		s = langevin.SGHMC{Friction: v[0], NoiseEstimate: v[1]}
	case "baoab":
		s = langevin.BAOAB{Friction: v[0]}
	case "sgnht":
		s = langevin.SGNHT{Friction: v[0], Splitting: langevin.SplittingBADODAB}
	}
	return s, s.Validate()
}

// temperature is that of the noise: none for approximations.
func (c Config) temperature() float64 {
	if c.Temperature == nil {
		return 0
	}
	return *c.Temperature
}

// checkAttributes refuses attributes out of range and chains that an approximation cannot do with.
func (c Config) checkAttributes() error {
	v, err := c.attributes()
	if err != nil {
		return err
	}
	switch c.samplerName() {
	case ensembleName:
		if c.Chains < 2 {
			return errors.Errorf("train: chains is %d, an ensemble wants at least 2: each is a member", c.Chains)
		}
	case dropoutName:
		if !(v[0] > 0 && v[0] < 1) {
			return errors.Errorf("train: %s: RATE is %v, wants a number between 0 and 1", dropoutName, v[0])
		}
	case swagName:
		if _, err := c.newSWAG(); err != nil {
			return err
		}
	case backpropName:
		return approximate.BayesByBackprop{Posterior: langevin.Posterior{DataSize: 1}, InitialDeviation: v[0]}.Validate()
	case walkName, malaName, hamiltonianName:
		if !(*c.Temperature > 0) {
			return errors.Errorf("train: %s: temperature is %v, wants a positive number", c.samplerName(), *c.Temperature)
		}
		_, err = c.metropolis(*c.BurnIn, 1)
		return err
	default:
		var s langevin.Sampler
		if s, err = c.sampler(1); err == nil && c.Cycles != nil {
			_, err = langevin.Plan{Steps: 2, BurnIn: 1, Thinning: 1, Cycles: 1}.Temperatures(s, *c.Temperature)
		}
	}
	return err
}

// network is the model, from images to logits. Monte Carlo dropout's drops inputs of all linear layers but one that comes first, in training and
// in predictions.
func (c Config) network(classes int) (layers.Sequential, error) {
	network, err := layers.New(c.Model, classes)
	if err != nil || c.samplerName() != dropoutName {
		return network, err
	}
	v, err := c.attributes()
	if err != nil {
		return nil, err
	}
	var with layers.Sequential
	learnt, dropped := false, false
	for _, layer := range network {
		_, linear := layer.(layers.Linear)
		if linear && learnt {
			with = append(with, layers.Dropout{Rate: v[0], AlsoPredicting: true})
			dropped = true
		}
		if _, flatten := layer.(layers.Flatten); !flatten {
			learnt = true
		}
		with = append(with, layer)
	}
	if !dropped {
		return nil, errors.Errorf("train: %s: %s has no linear layer after another layer", dropoutName, c.Model)
	}
	return with, nil
}

// passes is how many predictions are made of each sample: Monte Carlo dropout's differ.
func (c Config) passes() int {
	if c.samplerName() == dropoutName {
		return *c.Samples
	}
	return 1
}
