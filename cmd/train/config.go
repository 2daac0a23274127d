package main

import (
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/datasets"
	"github.com/pollen-ml/pollen/langevin"
	"github.com/pollen-ml/pollen/layers"
	"github.com/pollen-ml/pollen/optimizers"
)

// Config is all that decides what a run computes. It comes from defaults, then a file, then flags; the resolved one is saved in the
// run folder. Fields that do not apply to the sampler stay nil, or "" for the schedule.
type Config struct {
	Model        string   `json:"model"`
	Data         string   `json:"data"`
	DataFolder   string   `json:"data-folder,omitempty"`
	Subset       *int     `json:"subset,omitempty"`
	Sampler      string   `json:"sampler"`
	Schedule     string   `json:"schedule,omitempty"`
	Batch        int      `json:"batch"`
	Epochs       int      `json:"epochs"`
	BurnIn       *int     `json:"burn-in,omitempty"`
	Samples      *int     `json:"samples,omitempty"`
	Cycles       *int     `json:"cycles,omitempty"`
	Anchor       *int     `json:"anchor,omitempty"`
	Chains       int      `json:"chains"`
	Prior        *string  `json:"prior,omitempty"`
	Temperature  *float64 `json:"temperature,omitempty"`
	Temperatures *string  `json:"temperatures,omitempty"`
	Gamma        *string  `json:"gamma,omitempty"`
	Alpha        *float64 `json:"alpha,omitempty"`
	Lambda       *float64 `json:"lambda,omitempty"`
	Seed         uint64   `json:"seed"`
	Device       string   `json:"device"`
	Threads      int      `json:"threads,omitempty"`
	Precision    string   `json:"precision,omitempty"`
}

// defaultConfig is what fit does without flags.
func defaultConfig() Config {
	return Config{Model: smallModel, Data: "mnist", Sampler: "sgld", Batch: 100, Epochs: 8, Chains: 1, Seed: 1, Device: "auto"}
}

// optimizerSchedules are customary learning rates on the mean loss, by the optimizer's name; adadelta has none.
var optimizerSchedules = map[string]string{
	"sgd": "constant:0.1", "momentum": "constant:0.01", "nesterov": "constant:0.01",
	"adagrad": "constant:0.01", "rmsprop": "constant:0.001", "adam": "constant:0.001", "adamw": "constant:0.001",
}

// mostSteps bounds the tables that have an entry for each step of a run.
const mostSteps = 1 << 26

// resolve fills in what was left out and refuses what is wrong or does not apply, as far as that can be told without the data.
func (c Config) resolve() (Config, error) {
	usesRates, err := c.checkNames()
	if err != nil {
		return c, err
	}
	if err := c.checkApplicable(usesRates); err != nil {
		return c, err
	}
	c.fill(usesRates)
	return c, c.checkValues()
}

// checkNames refuses names of things that there are not. It tells whether the sampler has a learning rate.
func (c Config) checkNames() (usesRates bool, err error) {
	if _, err := layers.New(c.Model, 1); err != nil {
		return false, err
	}
	if err := checkData("data", c.Data, datasets.Names()); err != nil {
		return false, err
	}
	if err := checkDevice(c.Device, c.Threads, c.Precision); err != nil {
		return false, err
	}
	if r := c.rule(); r != nil {
		return r.schedule != "", nil
	}
	if !slices.Contains(optimizers.Names(), c.samplerName()) {
		return false, errors.Errorf("train: no sampler %q; there are %s, the approximations %s, and the optimizers %s", c.Sampler,
			strings.Join(samplerNames(), ", "), strings.Join(approximationNames(), ", "), strings.Join(optimizers.Names(), ", "))
	}
	optimizer, err := optimizers.New(c.Sampler)
	return err == nil && optimizers.UsesRates(optimizer), err
}

func checkData(flag, name string, known []string) error {
	if slices.Contains(known, name) {
		return nil
	}
	return usage("train: %s: no data set %q; there are %s", flag, name, strings.Join(known, ", "))
}

// checkApplicable refuses options that would have no effect.
func (c Config) checkApplicable(usesRates bool) error {
	if c.Schedule != "" && !usesRates {
		return errors.Errorf("train: schedule does not apply to %s, which finds its own step size", c.Sampler)
	}
	for _, option := range []struct {
		name  string
		given bool
	}{
		{"prior", c.Prior != nil}, {"temperature", c.Temperature != nil}, {"temperatures", c.Temperatures != nil},
		{"burn-in", c.BurnIn != nil}, {"samples", c.Samples != nil},
		{"cycles", c.Cycles != nil}, {"anchor", c.Anchor != nil}, {"gamma", c.Gamma != nil}, {"alpha", c.Alpha != nil}, {"lambda", c.Lambda != nil},
	} {
		if !option.given || c.uses(option.name) {
			continue
		}
		err := errors.Errorf("train: %s applies to %s, not to %s", option.name, strings.Join(rulesWith(option.name), ", "), c.Sampler)
		if c.rule() == nil && slices.Contains(samplerOptions, option.name) {
			return errors.Errorf("%v: an optimizer has one solution, and weight decay for a prior", err)
		}
		return err
	}
	return nil
}

// fill gives what was left out its default.
func (c *Config) fill(usesRates bool) {
	if usesRates && c.Schedule == "" {
		c.Schedule = c.defaultSchedule()
	}
	fillOption(c, "prior", &c.Prior, "gaussian:0.316")
	if ladder, err := c.ladder(); err == nil && len(ladder) > 0 {
		fillOption(c, "temperature", &c.Temperature, ladder[0])
	}
	fillOption(c, "temperature", &c.Temperature, 1)
	fillOption(c, "burn-in", &c.BurnIn, (3*c.cycleEpochs()+4)/8)
	fillOption(c, "samples", &c.Samples, 10)
	fillOption(c, "gamma", &c.Gamma, string(langevin.GammaFrozen))
	fillOption(c, "alpha", &c.Alpha, 0.99)
	fillOption(c, "lambda", &c.Lambda, dampings[c.samplerName()])
}

// fillOption gives an option that applies and was left out its default.
func fillOption[T any](c *Config, name string, to **T, value T) {
	if *to == nil && c.uses(name) {
		*to = &value
	}
}

// checkValues refuses values out of range, in a configuration that is filled.
func (c Config) checkValues() error {
	for _, count := range []struct {
		name  string
		value int
	}{{"batch", c.Batch}, {"epochs", c.Epochs}, {"chains", c.Chains}} {
		if count.value < 1 {
			return errors.Errorf("train: %s is %d, wants at least 1", count.name, count.value)
		}
	}
	if c.Chains > math.MaxUint16 {
		return errors.Errorf("train: chains is %d, wants at most %d", c.Chains, math.MaxUint16)
	}
	if c.Schedule != "" {
		if _, err := optimizers.ParseSchedule(c.Schedule); err != nil {
			return err
		}
	}
	switch {
	case c.Subset != nil && *c.Subset < 1:
		return errors.Errorf("train: subset is %d, wants at least 1", *c.Subset)
	case c.Temperature != nil && !(*c.Temperature >= 0 && *c.Temperature < math.Inf(1)):
		return errors.Errorf("train: temperature is %v, wants a finite number of at least 0", *c.Temperature)
	case c.Cycles != nil && (*c.Cycles < 1 || *c.Cycles > c.Epochs):
		return errors.Errorf("train: cycles is %d in %d epochs, wants 1 to as many", *c.Cycles, c.Epochs)
	case c.Anchor != nil && (*c.Anchor < 1 || *c.Anchor > c.Epochs):
		return errors.Errorf("train: anchor is %d of %d epochs, wants 1 to as many", *c.Anchor, c.Epochs)
	case c.BurnIn != nil && (*c.BurnIn < 0 || *c.BurnIn >= c.cycleEpochs()):
		return errors.Errorf("train: burn-in is %d of %d epochs, wants at least 0 and fewer than the epochs", *c.BurnIn, c.cycleEpochs())
	case c.Samples != nil && *c.Samples < 1:
		return errors.Errorf("train: samples is %d, wants at least 1", *c.Samples)
	case c.rule() == nil:
		return nil
	}
	if _, err := parsePrior(*c.Prior); err != nil {
		return err
	}
	if err := c.checkLadder(); err != nil {
		return err
	}
	return c.checkAttributes()
}

// part is what there is to train on: all of the data, or a subset.
func (c Config) part(data *datasets.Dataset) (*datasets.Dataset, error) {
	if c.Subset == nil {
		return data, nil
	}
	if *c.Subset > data.Len() {
		return nil, usage("train: subset of %d from the %d examples of %s, wants at most as many", *c.Subset, data.Len(), data.Name)
	}
	return data.Slice(0, *c.Subset)
}

// plan turns epochs into steps, on data of that size, and the schedule into the learning rate of each step; zeros if there is none.
func (c Config) plan(name string, dataSize int) (langevin.Plan, []float64, error) {
	if err := c.checkExact(name, dataSize); err != nil {
		return langevin.Plan{}, nil, err
	}
	if c.Batch > dataSize {
		return langevin.Plan{}, nil, usage("train: batch of %d from the %d examples of %s, wants at most as many", c.Batch, dataSize, name)
	}
	perEpoch := float64(dataSize) / float64(c.Batch)
	steps := perEpoch * float64(c.Epochs)
	if steps > mostSteps {
		return langevin.Plan{}, nil, usage("train: %d epochs are %.3g steps, wants at most %d", c.Epochs, steps, mostSteps)
	}
	plan := langevin.Plan{Steps: int(steps), BurnIn: int(steps) - 1, Thinning: 1}
	if c.uses("burn-in") {
		plan.BurnIn = int(perEpoch * float64(*c.BurnIn))
		cycles := 1
		if c.Cycles != nil {
			cycles, plan.Cycles = *c.Cycles, *c.Cycles
		}
		sampling := plan.Steps - cycles*plan.BurnIn
		plan.Thinning = sampling / c.states()
		if err := plan.Validate(); err != nil {
			return plan, nil, usage("train: %s in the %s after burn-in, wants at most one per step, and one of each cycle",
				counted(c.states(), "sample"), counted(sampling, "step"))
		}
	}
	if c.Schedule == "" {
		return plan, make([]float64, plan.Steps), nil
	}
	schedule, err := optimizers.ParseSchedule(c.Schedule)
	if err != nil {
		return plan, nil, wrapUsage(err)
	}
	rates, err := schedule.Rates(plan.Steps)
	return plan, rates, wrapUsage(err)
}

// cycleEpochs is how many epochs burn-in is a part of: those of a cycle, if there are any.
func (c Config) cycleEpochs() int {
	if c.Cycles != nil && *c.Cycles > 0 {
		return c.Epochs / *c.Cycles
	}
	return c.Epochs
}

// parsePrior reads "flat", "gaussian:0.3", "laplace:0.1", "student-t:3,0.1" or "scale-mixture:0.5,1,0.0025".
func parsePrior(text string) (langevin.Prior, error) {
	family, arguments, _ := strings.Cut(text, ":")
	var numbers []float64
	if arguments != "" {
		for _, s := range strings.Split(arguments, ",") {
			v, err := strconv.ParseFloat(strings.TrimSpace(s), 64)
			if err != nil {
				return langevin.Prior{}, errors.Errorf("train: prior %q: %q is not a number", text, s)
			}
			numbers = append(numbers, v)
		}
	}
	var p langevin.Prior
	switch {
	case family == "flat" && len(numbers) == 0:
		p = langevin.Flat()
	case family == "gaussian" && len(numbers) == 1:
		p = langevin.Gaussian(numbers[0])
	case family == "laplace" && len(numbers) == 1:
		p = langevin.Laplace(numbers[0])
	case family == "student-t" && len(numbers) == 2:
		p = langevin.StudentT(numbers[0], numbers[1])
	case family == "scale-mixture" && len(numbers) == 3:
		p = langevin.ScaleMixture(numbers[0], numbers[1], numbers[2])
	default:
		return p, errors.Errorf("train: prior %q, wants %s", text, priorForms)
	}
	return p, p.Validate()
}

// priorForms is what parsePrior reads.
const priorForms = "flat, gaussian:S, laplace:B, student-t:FREEDOM,S or scale-mixture:SHARE,WIDE,NARROW"
