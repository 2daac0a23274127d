package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/bayes"
	"github.com/pollen-ml/pollen/datasets"
	"github.com/pollen-ml/pollen/evaluate"
	"github.com/pollen-ml/pollen/internal/file"
	"github.com/pollen-ml/pollen/langevin"
	"github.com/pollen-ml/pollen/optimizers"
)

// The settings of Li et al. 2016, section 5.3, that all cells share. The rate is halved after each
// fifth of a run, every 20 epochs of 100.
const (
	batch    = 100
	burnIn   = 300 // steps
	thinning = 300 // steps
	alpha    = 0.99
	lambda   = 1e-5
	prior    = 1.0 // standard deviation
	halvings = 5
)

// methodOf has the methods of the table. The optimizers are the samplers at temperature 0, RMSprop
// and SGD, with the prior as weight decay.
var methodOf = map[string]struct {
	title          string
	preconditioned bool
	optimizer      bool
}{
	"psgld":   {"pSGLD", true, false},
	"sgld":    {"SGLD", false, false},
	"rmsprop": {"RMSprop", true, true},
	"sgd":     {"SGD", false, true},
}

// cell identifies one run of the table: a method on a perceptron with two hidden layers of a width,
// from one seed.
type cell struct {
	Method      string  `json:"method"` // of methodOf
	Data        string  `json:"data"`
	DataSize    int     `json:"dataSize"`
	Width       int     `json:"width"`
	Temperature float64 `json:"temperature"`
	Epochs      int     `json:"epochs"`
	Rate        float64 `json:"rate"` // initial learning rate, on the mean loss
	Seed        uint64  `json:"seed"`
	Chain       int     `json:"chain"` // the number of the run: chains of one seed are independent
}

// scores of one way to predict.
type scores struct {
	Error float64 `json:"error"` // fraction of the test images
	NLL   float64 `json:"nll"`
}

// result is the content of a finished cell's file.
type result struct {
	Cell    cell   `json:"cell"`
	Average scores `json:"average"`      // of probabilities averaged with the step sizes as weights
	Equal   scores `json:"equalWeights"` // of probabilities averaged with equal weights
	Last    scores `json:"last"`         // of the last state
	Samples int    `json:"samples"`
}

func (c cell) String() string {
	return fmt.Sprintf("%s-h%d-T%.3g-chain%d", c.Method, c.Width, c.Temperature, c.Chain)
}

// row returns what all cells of a row have in common.
func (c cell) row() cell {
	c.Width, c.Chain = 0, 0
	return c
}

func (c cell) steps() int { return c.DataSize / batch * c.Epochs }

func (c cell) samples() int {
	if methodOf[c.Method].optimizer {
		return 1
	}
	return (c.steps() - burnIn) / thinning
}

// spec returns the run of the cell. Samplers keep samples, optimizers their last state.
func (c cell) spec() bayes.Spec {
	s := bayes.Spec{
		Network: fmt.Sprintf("mlp-%d-%d", c.Width, c.Width), Method: langevin.SGLD{},
		Schedule: optimizers.Step{Initial: c.Rate, Factor: 0.5, Every: max(1, c.steps()/halvings)},
		Batch:    batch, Epochs: c.Epochs, Seed: c.Seed, FirstChain: c.Chain,
		Prior: new(langevin.Gaussian(prior)), Temperature: new(c.Temperature),
	}
	if methodOf[c.Method].preconditioned {
		s.Method = langevin.PSGLD{Alpha: alpha, Lambda: lambda, Gamma: langevin.GammaNone}
	}
	if methodOf[c.Method].optimizer {
		s.BurnIn, s.Samples = new(0), 1
	} else {
		s.BurnInSteps, s.Thinning = burnIn, thinning
	}
	return s
}

// read returns the cell's result, or nil if dir does not have it. A result with other settings
// under the same name is an error.
func (c cell) read(dir string) (*result, error) {
	path := c.path(dir)
	content, err := os.ReadFile(path)
	if os.IsNotExist(err) {
		return nil, nil
	}
	if err != nil {
		return nil, errors.Wrap(err, "perceptrons")
	}
	var r result
	if err := json.Unmarshal(content, &r); err != nil {
		return nil, errors.Wrapf(err, "perceptrons: %s", path)
	}
	if r.Cell != c {
		return nil, errors.Errorf("perceptrons: %s must have the settings %+v, has %+v: take another folder", path, c, r.Cell)
	}
	return &r, nil
}

// write writes the result, and deletes the cell's run, whose samples are large.
func (r *result) write(dir string) error {
	content, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return errors.Wrap(err, "perceptrons")
	}
	if err := file.Write(r.Cell.path(dir), append(content, '\n')); err != nil {
		return errors.Wrap(err, "perceptrons")
	}
	return errors.Wrap(os.RemoveAll(r.Cell.runDir(dir)), "perceptrons")
}

func (c cell) path(dir string) string { return filepath.Join(dir, c.String()+".json") }

func (c cell) runDir(dir string) string { return filepath.Join(dir, c.String()) }

// train makes the cell's run, or resumes it.
func (c cell) train(ctx context.Context, train *datasets.Dataset, dir string, options ...bayes.Option) (*bayes.Run, error) {
	data := &datasets.Splits{Train: train}
	m, err := bayes.ReadManifest(c.runDir(dir))
	if none := (*bayes.NotARunError)(nil); errors.As(err, &none) {
		return bayes.Fit(ctx, c.spec(), data, c.runDir(dir), options...)
	}
	if err != nil {
		return nil, err
	}
	if name, there, here := m.Difference(c.spec()); name != "" {
		return nil, errors.Errorf("perceptrons: %s holds a run whose %s is %q, not %q: take another folder", c.runDir(dir), name, there, here)
	}
	return bayes.Resume(ctx, c.runDir(dir), data, options...)
}

// make trains the cell and scores it.
func (c cell) make(ctx context.Context, train, test *datasets.Dataset, dir string, options ...bayes.Option) (*result, error) {
	run, err := c.train(ctx, train, dir, options...)
	if err != nil {
		return nil, err
	}
	return c.score(ctx, run, test)
}

func (c cell) score(ctx context.Context, run *bayes.Run, test *datasets.Dataset) (*result, error) {
	equal, err := evaluate.NewPredictive(test.Len(), test.Classes)
	if err != nil {
		return nil, err
	}
	last := make([]float64, test.Len()*test.Classes)
	average, err := run.Predictions(ctx, test, func(probabilities []float32, _ float64) error {
		for i, p := range probabilities {
			last[i] = float64(p)
		}
		return equal.Add(probabilities, 1)
	})
	if err != nil {
		return nil, err
	}
	r := &result{Cell: c, Samples: average.Samples}
	for _, way := range []struct {
		to            *scores
		probabilities []float64
	}{{&r.Average, average.Probabilities}, {&r.Equal, equal.Mean()}, {&r.Last, last}} {
		p, err := evaluate.NewPredictions(test.Name, way.probabilities, test.Labels, test.Classes)
		if err != nil {
			return nil, err
		}
		a, err := evaluate.Assess(evaluate.Case{In: p})
		if err != nil {
			return nil, err
		}
		*way.to = scores{Error: 1 - a.Values["accuracy"], NLL: a.Values["nll"]}
	}
	return r, nil
}
