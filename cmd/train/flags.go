package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/pkg/errors"
	"github.com/spf13/pflag"
)

// bindFlags makes a flag for each field. A configuration file has the same names.
func (c *Config) bindFlags(f *pflag.FlagSet) {
	f.StringVar(&c.Model, "model", c.Model, "network, see Models above")
	f.StringVar(&c.Data, "data", c.Data, "data set to train on, see Data sets above")
	f.StringVar(&c.DataFolder, "data-folder", c.DataFolder, "folder with data sets, looked into first")
	optional(f, &c.Subset, "int", strconv.Atoi, "subset", "train on that many of the examples, the first ones (default: all)")
	f.StringVar(&c.Sampler, "sampler", c.Sampler, "update rule, see Samplers above")
	f.StringVar(&c.Schedule, "schedule", c.Schedule, "learning rate on the mean loss by step, see Schedules above (default by sampler and model)")
	f.IntVar(&c.Batch, "batch", c.Batch, "examples per minibatch")
	f.IntVar(&c.Epochs, "epochs", c.Epochs, "passes over the data, burn-in included")
	optional(f, &c.BurnIn, "int", strconv.Atoi, "burn-in", "epochs before the first sample, of each cycle (default 3/8 of them)")
	optional(f, &c.Samples, "int", strconv.Atoi, "samples", "samples per chain, spaced evenly after burn-in or drawn at the end; mc-dropout: passes (default 10)")
	optional(f, &c.Cycles, "int", strconv.Atoi, "cycles", "cyclical sampling: each cycle explores without noise for its burn-in, then samples (default: none)")
	optional(f, &c.Anchor, "int", strconv.Atoi, "anchor", "epochs from one anchor of control variates to the next: less noise, twice the work (default: none)")
	f.IntVar(&c.Chains, "chains", c.Chains, "Markov chains, started from different initial values")
	optional(f, &c.Prior, "string", parseText, "prior", "prior of each weight: "+priorForms+" (default gaussian:0.316)")
	optional(f, &c.Temperature, "float", parseFloat, "temperature", "temperature of the posterior (default 1)")
	optional(f, &c.Temperatures, "string", parseText, "temperatures",
		"replica exchange: rising temperatures that chains swap, the samples' first, as 1,1.02,1.04; each chain becomes as many;\n"+
			"to be swapped, neighbours may differ by some 2/sqrt(weights) of themselves (default: none)")
	optional(f, &c.Gamma, "string", parseText, "gamma", "psgld's treatment of Gamma: frozen, none, hutchinson or exact (default frozen)")
	optional(f, &c.Alpha, "float", parseFloat, "alpha", "preconditioners' memory of squared gradients (default 0.99)")
	optional(f, &c.Lambda, "float", parseFloat, "lambda", "what bounds or damps preconditioners (default 1e-5 for psgld, 1e-3 for fsgld, 0.1 for ksgld)")
	f.Uint64Var(&c.Seed, "seed", c.Seed, "seed of everything random")
	bindDevice(f, &c.Device, &c.Threads, &c.Precision)
}

func bindDevice(f *pflag.FlagSet, device *string, threads *int, precision *string) {
	f.StringVar(device, "device", "auto", "device: "+strings.Join(deviceNames, " or "))
	f.IntVar(threads, "threads", 0, "threads of the cpu device, 0 for all")
	f.StringVar(precision, "precision", "", "operands of the matrix products on GPUs: "+strings.Join(precisions, ", ")+" (default fp32)")
}

// optionalValue is a flag whose absence can be told from any value.
type optionalValue[T any] struct {
	to    **T
	parse func(string) (T, error)
	kind  string
}

func optional[T any](f *pflag.FlagSet, to **T, kind string, parse func(string) (T, error), name, usage string) {
	f.Var(optionalValue[T]{to, parse, kind}, name, usage)
}

func parseText(s string) (string, error) { return s, nil }

func parseFloat(s string) (float64, error) { return strconv.ParseFloat(s, 64) }

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

// layered is the configuration: defaults, then the file, then the flags that were given.
func layered(given *pflag.FlagSet, file string) (Config, error) {
	config := defaultConfig()
	flags := pflag.NewFlagSet("configuration", pflag.ContinueOnError)
	flags.SortFlags = false // errors list the names in the order of the help
	config.bindFlags(flags)
	if file != "" {
		if err := config.read(file, flags); err != nil {
			return config, usageError{err}
		}
	}
	var failed error
	given.Visit(func(f *pflag.Flag) {
		if flags.Lookup(f.Name) != nil && failed == nil {
			failed = flags.Set(f.Name, f.Value.String())
		}
	})
	if failed != nil {
		return config, usageError{failed}
	}
	resolved, err := config.resolve()
	return resolved, wrapUsage(err)
}

// read overlays a file on c, whose flags are given: YAML with their names as keys, or the manifest of a run to repeat.
func (c *Config) read(path string, flags *pflag.FlagSet) error {
	if filepath.Base(path) == manifestFile {
		m, err := readManifest(filepath.Dir(path))
		if err == nil {
			*c = m.Config
		}
		return err
	}
	content, err := os.ReadFile(path)
	if err != nil {
		return errors.Wrap(err, "train: config")
	}
	var fields, second yaml.MapSlice
	decoder := yaml.NewDecoder(bytes.NewReader(content))
	if err := decoder.Decode(&fields); err != nil && err != io.EOF {
		return errors.Errorf("train: config %s: %s", path, yaml.FormatError(err, false, false))
	}
	if err := decoder.Decode(&second); err != io.EOF {
		return errors.Errorf("train: config %s: more than one document", path)
	}
	for _, field := range fields {
		if err := setField(flags, fmt.Sprint(field.Key), field.Value); err != nil {
			return errors.Wrapf(err, "train: config %s", path)
		}
	}
	return nil
}

// setField sets a flag to a value of a file.
func setField(flags *pflag.FlagSet, name string, value any) error {
	f := flags.Lookup(name)
	if f == nil {
		var names []string
		flags.VisitAll(func(f *pflag.Flag) { names = append(names, f.Name) })
		return errors.Errorf("no key %q; there are %s", name, strings.Join(names, ", "))
	}
	text := fmt.Sprint(value)
	switch value.(type) {
	case string, int64, uint64, float64:
		if flags.Set(name, text) == nil {
			return nil
		}
	}
	return errors.Errorf("%s is %s, wants %s", name, text, kindOf(f))
}
