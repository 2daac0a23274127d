package main

import (
	"bytes"
	"fmt"
	"math"
	"os"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/pkg/errors"
	"github.com/spf13/pflag"

	"github.com/pollen-ml/pollen/langevin"
	"github.com/pollen-ml/pollen/optimizers"
)

// Config is all that decides what a run computes. It comes from defaults, then a file, then flags; the resolved one is saved in the
// run folder. Fields that the sampler does not have stay nil.
type Config struct {
	Model       string   `yaml:"model"`
	Data        string   `yaml:"data"`
	DataFolder  string   `yaml:"data-folder,omitempty"`
	Sampler     string   `yaml:"sampler"`
	Schedule    string   `yaml:"schedule"`
	Batch       int      `yaml:"batch"`
	Epochs      int      `yaml:"epochs"`
	Chains      int      `yaml:"chains"`
	Seed        uint64   `yaml:"seed"`
	Device      string   `yaml:"device"`
	Threads     int      `yaml:"threads,omitempty"`
	Prior       *string  `yaml:"prior,omitempty"`
	Temperature *float64 `yaml:"temperature,omitempty"`
	BurnIn      *int     `yaml:"burn-in,omitempty"`
	Samples     *int     `yaml:"samples,omitempty"`
	Gamma       *string  `yaml:"gamma,omitempty"`
	Alpha       *float64 `yaml:"alpha,omitempty"`
	Lambda      *float64 `yaml:"lambda,omitempty"`
}

// defaultConfig is what fit does without flags.
func defaultConfig() Config {
	return Config{
		Model: "lenet-small", Data: "mnist", Sampler: "sgld", Schedule: "constant:0.2",
		Batch: 100, Epochs: 8, Chains: 1, Seed: 1, Device: "auto",
	}
}

// bindFlags makes a flag for each field, named as in a file.
func (c *Config) bindFlags(f *pflag.FlagSet) {
	f.StringVar(&c.Model, "model", c.Model, "network: see the models in the help")
	f.StringVar(&c.Data, "data", c.Data, "data set to train on: see the command datasets")
	f.StringVar(&c.DataFolder, "data-folder", c.DataFolder, "folder with data sets, looked into first")
	f.StringVar(&c.Sampler, "sampler", c.Sampler, "sgld, psgld, or an optimizer with its hyperparameters, e.g. momentum:0.9,1e-4: "+strings.Join(optimizers.Names(), ", "))
	f.StringVar(&c.Schedule, "schedule", c.Schedule, "learning rate on the mean loss, by step, e.g. constant:0.1, cosine:0.1,0, polynomial:0.2,0.02,0.55")
	f.IntVar(&c.Batch, "batch", c.Batch, "examples per minibatch")
	f.IntVar(&c.Epochs, "epochs", c.Epochs, "passes over the data, burn-in included")
	f.IntVar(&c.Chains, "chains", c.Chains, "Markov chains, started from different initial values")
	f.Uint64Var(&c.Seed, "seed", c.Seed, "seed of everything random")
	f.StringVar(&c.Device, "device", c.Device, "device: auto or cpu")
	f.IntVar(&c.Threads, "threads", c.Threads, "threads of the cpu device, 0 for all")
	optionalText(f, &c.Prior, "prior", "prior of each weight: flat, gaussian:S, laplace:B, student-t:FREEDOM,S (samplers only; default gaussian:0.316)")
	optional(f, &c.Temperature, strconv.ParseFloat, "temperature", "temperature of the posterior (samplers only; default 1)")
	optionalInt(f, &c.BurnIn, "burn-in", "epochs before the first sample (samplers only; default 3/8 of the epochs)")
	optionalInt(f, &c.Samples, "samples", "samples per chain, evenly spaced after burn-in (samplers only; default 10)")
	optionalText(f, &c.Gamma, "gamma", "psgld's treatment of Gamma: frozen or none (default frozen)")
	optional(f, &c.Alpha, strconv.ParseFloat, "alpha", "psgld's memory of squared gradients (default 0.99)")
	optional(f, &c.Lambda, strconv.ParseFloat, "lambda", "psgld's bound on the preconditioner (default 1e-5)")
}

// optionalValue is a flag whose absence can be told from any value.
type optionalValue[T any] struct {
	to    **T
	parse func(string) (T, error)
	kind  string
}

func optional(f *pflag.FlagSet, to **float64, parse func(string, int) (float64, error), name, usage string) {
	f.Var(optionalValue[float64]{to, func(s string) (float64, error) { return parse(s, 64) }, "float"}, name, usage)
}

func optionalText(f *pflag.FlagSet, to **string, name, usage string) {
	f.Var(optionalValue[string]{to, func(s string) (string, error) { return s, nil }, "string"}, name, usage)
}

func optionalInt(f *pflag.FlagSet, to **int, name, usage string) {
	f.Var(optionalValue[int]{to, strconv.Atoi, "int"}, name, usage)
}

func (v optionalValue[T]) String() string {
	if v.to == nil || *v.to == nil {
		return ""
	}
	return fmt.Sprint(**v.to)
}

func (v optionalValue[T]) Set(s string) error {
	value, err := v.parse(s)
	*v.to = &value
	return err
}

func (v optionalValue[T]) Type() string { return v.kind }

// readConfig overlays a file on c. Keys that do not exist are errors.
func (c *Config) readConfig(path string) error {
	content, err := os.ReadFile(path)
	if err != nil {
		return errors.Wrap(err, "train: config")
	}
	return errors.Wrapf(yaml.NewDecoder(bytes.NewReader(content), yaml.Strict()).Decode(c), "train: config %s", path)
}

func (c Config) isSampler() bool { return c.Sampler == "sgld" || c.Sampler == "psgld" }

// resolve fills in what was left out and refuses what does not apply.
func (c Config) resolve() (Config, error) {
	if !c.isSampler() {
		if _, err := optimizers.New(c.Sampler); err != nil {
			return c, errors.Errorf("train: sampler %q, wants sgld, psgld or an optimizer: %v", c.Sampler, err)
		}
	}
	for name, given := range map[string]bool{
		"prior": c.Prior != nil, "temperature": c.Temperature != nil, "burn-in": c.BurnIn != nil, "samples": c.Samples != nil,
	} {
		if given && !c.isSampler() {
			return c, errors.Errorf("train: %s does not apply to %s: an optimizer has one solution, and weight decay for a prior", name, c.Sampler)
		}
	}
	for name, given := range map[string]bool{"gamma": c.Gamma != nil, "alpha": c.Alpha != nil, "lambda": c.Lambda != nil} {
		if given && c.Sampler != "psgld" {
			return c, errors.Errorf("train: %s applies to psgld only, not to %s", name, c.Sampler)
		}
	}
	for name, v := range map[string]int{"batch": c.Batch, "epochs": c.Epochs, "chains": c.Chains} {
		if v < 1 {
			return c, errors.Errorf("train: %s is %d, wants at least 1", name, v)
		}
	}
	if c.isSampler() {
		c.Prior = orElse(c.Prior, "gaussian:0.316")
		c.Temperature = orElse(c.Temperature, 1)
		c.BurnIn = orElse(c.BurnIn, (3*c.Epochs+4)/8)
		c.Samples = orElse(c.Samples, 10)
		if !(*c.Temperature >= 0 && *c.Temperature < math.Inf(1)) || *c.BurnIn < 0 || *c.BurnIn >= c.Epochs || *c.Samples < 1 {
			return c, errors.Errorf("train: temperature %v, burn-in %d of %d epochs, %d samples: wants temperature >= 0, 0 <= burn-in < epochs, samples >= 1",
				*c.Temperature, *c.BurnIn, c.Epochs, *c.Samples)
		}
	}
	if c.Sampler == "psgld" {
		c.Gamma = orElse(c.Gamma, string(langevin.GammaFrozen))
		c.Alpha = orElse(c.Alpha, 0.99)
		c.Lambda = orElse(c.Lambda, 1e-5)
	}
	return c, nil
}

func orElse[T any](p *T, value T) *T {
	if p == nil {
		return &value
	}
	return p
}

// parsePrior reads "flat", "gaussian:0.3", "laplace:0.1" or "student-t:3,0.1".
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
	default:
		return p, errors.Errorf("train: prior %q, wants flat, gaussian:S, laplace:B or student-t:FREEDOM,S", text)
	}
	return p, p.Validate()
}
