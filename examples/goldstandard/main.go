// Command goldstandard samples the posterior of a small network on 160 handwritten digits by Hamiltonian Monte Carlo on all of them, and tells
// how near the predictions of samplers on minibatches, and of approximations, come to it.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"

	"github.com/pollen-ml/pollen/datasets"
	"github.com/pollen-ml/pollen/evaluate"
	"github.com/pollen-ml/pollen/langevin"
	"github.com/pollen-ml/pollen/layers"
	"github.com/pollen-ml/pollen/report"
	"github.com/pollen-ml/pollen/samples"
	"github.com/pollen-ml/pollen/tensor"
)

// The posterior: all methods have the data, the network and the prior in common.
const (
	dataSize = 160
	testSize = 1000
	classes  = 10
	model    = "mlp-20-20"
)

var posterior = langevin.Posterior{DataSize: dataSize, Prior: langevin.Gaussian(0.2)}

func main() {
	effort := flag.Float64("effort", 1, "how long all chains are, relative to what takes some minutes")
	flag.Parse()
	if err := run(context.Background(), os.Stdout, os.Stderr, "mnist", *effort); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// study is what all methods share.
type study struct {
	ctx         context.Context
	train, test *datasets.Dataset
	device      tensor.Device
	effort      float64
}

// scaled is a number of steps or draws, for the effort.
func (s *study) scaled(n int) int { return max(1, int(s.effort*float64(n))) }

// predictions averages a network's probabilities for the test images, sample after sample.
type predictions struct {
	predictor *samples.Predictor
	mean      *evaluate.Predictive
	last      []float32
}

func (s *study) predictions(network layers.Sequential) (*predictions, error) {
	predictor, err := samples.NewPredictor(s.device, tensor.Float32, samples.Images{
		Pixels: s.test.Images, Channels: 1, Height: s.test.Height, Width: s.test.Width, Mean: s.train.Mean, Deviation: s.train.Deviation,
	}, 100, network.Apply)
	if err != nil {
		return nil, err
	}
	mean, err := evaluate.NewPredictive(s.test.Len(), classes)
	return &predictions{predictor, mean, make([]float32, s.test.Len()*classes)}, err
}

func (p *predictions) add(sample samples.Sample) error {
	if err := p.predictor.Predict(sample, p.last); err != nil {
		return err
	}
	return p.mean.Add(p.last, sample.Weight)
}

func run(ctx context.Context, out, progress io.Writer, data string, effort float64) error {
	s := &study{ctx: ctx, effort: effort}
	if err := s.load(data); err != nil {
		return err
	}
	s.device = tensor.NewHost(0)
	defer s.device.Close()
	first, err := s.hmc(1, progress)
	if err != nil {
		return err
	}
	second, err := s.hmc(2, progress)
	if err != nil {
		return err
	}
	reference := pool(first.mean, second.mean)
	printConvergence(out, first, second)
	table := report.NewTable("against HMC", report.Column{Title: "agreement", Format: "%.3f"}, report.Column{Title: "total variation", Format: "%.3f"},
		report.Column{Title: "accuracy", Format: "%.3f"}, report.Column{Title: "NLL", Format: "%.3f"})
	if err := s.add(table, "HMC, seed 2 against seed 1", first.mean, second.mean); err != nil {
		return err
	}
	if err := s.add(table, "HMC, both seeds", reference, reference); err != nil {
		return err
	}
	for _, m := range methods {
		fmt.Fprintf(progress, "%s\n", m.name)
		mean, err := m.run(s)
		if err != nil {
			return fmt.Errorf("%s: %w", m.name, err)
		}
		if err := s.add(table, m.name, reference, mean); err != nil {
			return err
		}
	}
	return table.WriteText(out)
}

// load takes the first images of each split.
func (s *study) load(name string) error {
	for _, part := range []struct {
		to    **datasets.Dataset
		split datasets.Split
		size  int
	}{{&s.train, datasets.Train, dataSize}, {&s.test, datasets.Test, testSize}} {
		data, err := datasets.Load(name, part.split, datasets.Options{Context: s.ctx})
		if err != nil {
			return err
		}
		if *part.to, err = data.Slice(0, part.size); err != nil {
			return err
		}
	}
	return nil
}

// add adds a row: how near predictions are to the reference's, and how good they are.
func (s *study) add(table *report.Table, name string, reference, mean []float64) error {
	predictions, err := evaluate.NewPredictions(s.test.Name, mean, s.test.Labels, classes)
	if err != nil {
		return err
	}
	scores, err := evaluate.Assess(evaluate.Case{In: predictions})
	if err != nil {
		return err
	}
	near, err := evaluate.Compare(mean, reference, classes)
	if err != nil {
		return err
	}
	return table.Add(name, near.Agreement, near.TotalVariation, scores.Values["accuracy"], scores.Values["nll"])
}

// pool is the mean of two means of as many samples each.
func pool(p, q []float64) []float64 {
	mean := make([]float64, len(p))
	for i := range p {
		mean[i] = (p[i] + q[i]) / 2
	}
	return mean
}
