package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/datasets"
	"github.com/pollen-ml/pollen/evaluate"
	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/graph/op"
	"github.com/pollen-ml/pollen/internal/file"
	"github.com/pollen-ml/pollen/langevin"
	"github.com/pollen-ml/pollen/layers"
	"github.com/pollen-ml/pollen/optimizers"
	"github.com/pollen-ml/pollen/samples"
	"github.com/pollen-ml/pollen/tensor"
)

// The settings of Li et al. 2016, section 5.3, that all cells have in common. The rate is halved after each fifth of a run: every 20 epochs of 100.
const (
	cellBatch    = 100
	cellBurnIn   = 300 // steps
	cellThinning = 300 // steps
	cellAlpha    = 0.99
	cellLambda   = 1e-5
	cellPrior    = 1.0 // standard deviation
	cellHalvings = 5
)

// cell is all that decides one run of the table: a method on a perceptron 784-width-width-10 from one seed. Methods at temperature 0 are the
// optimizers that the samplers of the same gradients are then: RMSprop and SGD, with the weight decay that the prior is.
type cell struct {
	Method      string  `json:"method"` // of tableMethods
	Data        string  `json:"data"`
	DataSize    int     `json:"dataSize"`
	Width       int     `json:"width"`
	Temperature float64 `json:"temperature"`
	Epochs      int     `json:"epochs"`
	Rate        float64 `json:"rate"` // of the first step, on the mean loss
	Seed        uint64  `json:"seed"`
	Chain       int     `json:"chain"` // the number of the seed: chains of one seed are independent
}

// cellScores are the scores of one way to predict.
type cellScores struct {
	Error float64 `json:"error"` // share of the test images
	NLL   float64 `json:"nll"`
}

// cellResult is a finished cell's file.
type cellResult struct {
	Cell    cell       `json:"cell"`
	Average cellScores `json:"average"`      // of probabilities, weighted by the step size
	Equal   cellScores `json:"equalWeights"` // of probabilities, without weights
	Last    cellScores `json:"last"`         // of the last state alone
	Samples int        `json:"samples"`
	Seconds float64    `json:"seconds"`
}

func (c cell) isOptimizer() bool { return c.Temperature == 0 }

func (c cell) String() string {
	return fmt.Sprintf("%s-h%d-T%.3g-chain%d", c.Method, c.Width, c.Temperature, c.Chain)
}

func (c cell) plan() langevin.Plan {
	steps := c.DataSize / cellBatch * c.Epochs
	if c.isOptimizer() {
		return langevin.Plan{Steps: steps, BurnIn: steps - 1, Thinning: 1}
	}
	return langevin.Plan{Steps: steps, BurnIn: cellBurnIn, Thinning: cellThinning}
}

func (c cell) rates() ([]float64, error) {
	steps := c.plan().Steps
	return optimizers.Step{Initial: c.Rate, Factor: 0.5, Every: max(1, steps/cellHalvings)}.Rates(steps)
}

func (c cell) sampler() langevin.Sampler {
	if tableMethods[c.Method].preconditioned {
		return langevin.PSGLD{Alpha: cellAlpha, Lambda: cellLambda, Gamma: langevin.GammaNone}
	}
	return langevin.SGLD{}
}

// read returns the cell's result if the folder has it; one of other settings under the same name is an error.
func (c cell) read(folder string) (*cellResult, error) {
	path := c.path(folder)
	content, err := os.ReadFile(path)
	if os.IsNotExist(err) {
		return nil, nil
	}
	if err != nil {
		return nil, errors.Wrap(err, "train: table")
	}
	var r cellResult
	if err := json.Unmarshal(content, &r); err != nil {
		return nil, errors.Wrapf(err, "train: table: %s", path)
	}
	if r.Cell != c {
		return nil, errors.Errorf("train: table: %s has the settings %+v, wants %+v: take another folder", path, r.Cell, c)
	}
	return &r, nil
}

func (r *cellResult) write(folder string) error {
	content, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return errors.Wrap(err, "train: table")
	}
	return errors.Wrap(file.Write(r.Cell.path(folder), append(content, '\n')), "train: table")
}

func (c cell) path(folder string) string { return filepath.Join(folder, c.String()+".json") }

// cellRun is a cell under way.
type cellRun struct {
	cell      cell
	test      *datasets.Dataset
	rates     []float64
	session   *graph.Session
	predictor *samples.Predictor
	last      []float32 // probabilities of the last sample
	average   *evaluate.Predictive
	equal     *evaluate.Predictive
}

func (c cell) begin(train, test *datasets.Dataset, device tensor.Device) (r *cellRun, err error) {
	r = &cellRun{cell: c, test: test}
	defer func() {
		if err != nil {
			r.close()
		}
	}()
	if r.rates, err = c.rates(); err != nil {
		return r, err
	}
	network, err := layers.New(fmt.Sprintf("mlp-%d-%d", c.Width, c.Width), train.Classes)
	if err != nil {
		return r, err
	}
	b := graph.New(tensor.Float32)
	shape := tensor.Shape{train.Len(), train.Channels, train.Height, train.Width}
	x, labels := op.Minibatch(b, op.Batch{Size: cellBatch, Shuffled: true}, shape, train.Mean, train.Deviation)
	loss := b.Apply(op.CrossEntropy{}, network.Apply(b, x), labels)
	posterior := langevin.Posterior{DataSize: train.Len(), Prior: langevin.Gaussian(cellPrior)}
	temperatures := make([]float64, len(r.rates))
	for i := range temperatures {
		temperatures[i] = c.Temperature
	}
	if err := langevin.Attach(b, c.sampler(), posterior, loss, posterior.StepSizes(r.rates), temperatures); err != nil {
		return r, err
	}
	b.Record("loss", loss)
	program, err := b.Compile()
	if err != nil {
		return r, err
	}
	if r.session, err = program.Load(device, graph.LoadOptions{Seed: c.Seed, FirstChain: c.Chain, Chains: 1}); err != nil {
		return r, err
	}
	if err := graph.Write(r.session, "images", 0, 0, train.Images); err != nil {
		return r, err
	}
	if err := graph.Write(r.session, "labels", 0, 0, train.Labels); err != nil {
		return r, err
	}
	r.predictor, err = samples.NewPredictor(device, tensor.Float32, samples.Images{
		Pixels: test.Images, Channels: test.Channels, Height: test.Height, Width: test.Width, Mean: train.Mean, Deviation: train.Deviation,
	}, predictBatch, network.Apply)
	if err != nil {
		return r, err
	}
	r.last = make([]float32, test.Len()*r.predictor.Classes())
	if r.average, err = evaluate.NewPredictive(test.Len(), r.predictor.Classes()); err != nil {
		return r, err
	}
	r.equal, err = evaluate.NewPredictive(test.Len(), r.predictor.Classes())
	return r, err
}

func (r *cellRun) close() {
	if r.session != nil {
		r.session.Close()
	}
	if r.predictor != nil {
		r.predictor.Close()
	}
}

// sample predicts by the chain's present state.
func (r *cellRun) sample() error {
	step := int(r.session.Steps())
	sample, err := samples.Take(r.session, 0, r.rates[step-1]/float64(r.cell.DataSize))
	if err != nil {
		return err
	}
	if err := r.predictor.Predict(sample, r.last); err != nil {
		return err
	}
	if err := r.average.Add(r.last, sample.Weight); err != nil {
		return err
	}
	return r.equal.Add(r.last, 1)
}

// run makes the cell, and tells after each window of steps how many they were.
func (c cell) run(ctx context.Context, train, test *datasets.Dataset, device tensor.Device, now func() time.Time, made func(steps int)) (*cellResult, error) {
	start := now()
	r, err := c.begin(train, test, device)
	if err != nil {
		return nil, err
	}
	defer r.close()
	err = c.plan().Run(ctx, r.session, window, func(p langevin.Progress) error {
		made(p.To - p.From)
		if p.Sample {
			return r.sample()
		}
		return nil
	})
	if err != nil {
		return nil, errors.WithMessage(err, c.String())
	}
	result := &cellResult{Cell: c, Samples: r.average.Samples()}
	for _, score := range []struct {
		to            *cellScores
		probabilities []float64
	}{{&result.Average, r.average.Mean()}, {&result.Equal, r.equal.Mean()}, {&result.Last, widened(r.last)}} {
		s, err := scoreOf(score.probabilities, test.Labels, test.Classes)
		if err != nil {
			return nil, errors.WithMessage(err, c.String())
		}
		*score.to = cellScores{Error: 1 - s.Accuracy, NLL: s.NLL}
	}
	result.Seconds = now().Sub(start).Seconds()
	return result, nil
}

func widened(values []float32) []float64 {
	wide := make([]float64, len(values))
	for i, v := range values {
		wide[i] = float64(v)
	}
	return wide
}
