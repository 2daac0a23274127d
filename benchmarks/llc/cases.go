package main

import (
	"context"
	"os"
	"path/filepath"
	"strings"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/bayes"
	"github.com/pollen-ml/pollen/datasets"
	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/graph/op"
	"github.com/pollen-ml/pollen/internal/npz"
	"github.com/pollen-ml/pollen/langevin/llc"
	"github.com/pollen-ml/pollen/langevin/llc/known"
	"github.com/pollen-ml/pollen/layers"
	"github.com/pollen-ml/pollen/samples"
	"github.com/pollen-ml/pollen/tensor"
)

// benchmark is a model for both sides: Pollen's, and the same as arrays and layers for the peer.
type benchmark struct {
	name    string
	model   llc.Model
	options llc.Options
	exact   float64 // 0 if it is not known
	arrays  []npz.Array
	layers  []map[string]any
	loss    string
}

// networks are those trained on digits, as the peer's layers.
var networks = map[string][]map[string]any{
	"mlp-100": {{"op": "flatten"}, {"op": "linear", "name": "linear1"}, {"op": "relu"}, {"op": "linear", "name": "linear2"}},
	"lenet-small": {
		{"op": "conv2d", "name": "conv1"}, {"op": "maxpool"}, {"op": "relu"}, {"op": "conv2d", "name": "conv2"}, {"op": "maxpool"}, {"op": "relu"},
		{"op": "flatten"}, {"op": "linear", "name": "linear1"}, {"op": "relu"}, {"op": "linear", "name": "linear2"},
	},
}

// allCases returns the cases whose names contain a text.
func allCases(only string) (cases []benchmark, err error) {
	add := func(name string, make func() (benchmark, error)) {
		if err != nil || !strings.Contains(name, only) {
			return
		}
		var c benchmark
		c, err = make()
		c.name = name
		cases = append(cases, c)
	}
	add("linear regression, d = 20", func() (benchmark, error) {
		c := tabular(known.LinearRegression(2000, 20), "squares", 10)
		c.options = llc.Options{Localization: 1, StepSizes: []float64{2e-4}, Batch: 100, Chains: 4, Steps: 1500, BurnIn: 500}
		return c, nil
	})
	add("logistic regression, d = 10", func() (benchmark, error) {
		m, _, err := known.LogisticRegression(4000, 10)
		c := tabular(m, "logistic", 5)
		c.options = llc.Options{Localization: 1, StepSizes: []float64{4e-4}, Batch: 100, Chains: 4, Steps: 1500, BurnIn: 500}
		return c, err
	})
	add("reduced rank 4-3-4", func() (benchmark, error) { return deep(1, 4, 3, 4) })
	add("deep linear 3-3-4-3", func() (benchmark, error) { return deep(1, 3, 3, 4, 3) })
	for _, name := range []string{"mlp-100", "lenet-small"} {
		add(name+", 2000 digits", func() (benchmark, error) { return digits(name) })
	}
	return cases, err
}

// deep is a deep linear network of a rank, at the N beta of 12 000 examples.
func deep(rank int, widths ...int) (benchmark, error) {
	exact, _, err := known.Coefficient(rank, widths...)
	c := tabular(known.DeepLinear(600, rank, widths...), "squares", exact)
	c.options = llc.Options{
		Localization: 1, InverseTemperature: 2, StepSizes: []float64{1e-4}, Batch: 100, Chains: 4, Steps: 1500, BurnIn: 500,
	}
	return c, err
}

// tabular is a case of package known, whose data are read back from a session.
func tabular(m llc.Model, loss string, exact float64) benchmark {
	c := benchmark{model: m, loss: loss, exact: exact}
	for _, p := range m.Centre {
		c.layers = append(c.layers, map[string]any{"op": "product", "name": p.Name})
		c.arrays = append(c.arrays, npz.Array{Name: p.Name, Shape: p.Shape, Values: p.Values})
	}
	first, last := m.Centre[0].Shape, m.Centre[len(m.Centre)-1].Shape
	b := graph.New(tensor.Float32)
	b.Output("losses", m.Losses(b, op.Batch{Size: 1}))
	err := b.OnHost(graph.LoadOptions{}, func(s *graph.Session) error {
		if err := m.Write(s); err != nil {
			return err
		}
		for name, width := range map[string]int{"x": first[0], "y": last[1]} {
			values := make([]float32, m.DataSize*width)
			if err := graph.Read(s, name, 0, 0, values); err != nil {
				return err
			}
			c.arrays = append(c.arrays, npz.Array{Name: name, Shape: []int{m.DataSize, width}, Values: values})
		}
		return nil
	})
	if err != nil {
		panic(err) // data that were written a moment ago
	}
	return c
}

// trained trains a network by Adam, and returns it with its weights.
func trained(name string, train *datasets.Dataset) (network layers.Sequential, weights samples.Sample, err error) {
	dir, err := os.MkdirTemp("", "llc-run")
	if err != nil {
		return nil, weights, errors.Wrap(err, "llc")
	}
	defer os.RemoveAll(dir)
	adam, err := bayes.ParseMethod("adam")
	if err != nil {
		return nil, weights, err
	}
	spec := bayes.Spec{Network: name, Method: adam, Epochs: 30, Seed: 1}
	run, err := bayes.Fit(context.Background(), spec, &datasets.Splits{Train: train}, filepath.Join(dir, "run"))
	if err != nil {
		return nil, weights, err
	}
	files, err := run.Samples()
	if err != nil {
		return nil, weights, err
	}
	if weights, err = samples.ReadSample(files[0]); err != nil {
		return nil, weights, err
	}
	network, err = run.Network()
	return network, weights, err
}

// digits is a network that was trained on 2000 digits by Adam.
func digits(name string) (c benchmark, err error) {
	data, err := datasets.Open("mnist", datasets.Options{})
	if err != nil {
		return c, err
	}
	train, err := data.Train.First(2000)
	if err != nil {
		return c, err
	}
	network, sample, err := trained(name, train)
	if err != nil {
		return c, err
	}
	n := train.Len()
	images := samples.Images{Pixels: train.Images, Channels: 1, Height: train.Height, Width: train.Width, Mean: train.Mean, Std: train.Std}
	c = benchmark{loss: "labels", layers: networks[name]}
	c.model = llc.Model{
		DataSize: n, Centre: sample.Parameters,
		Losses: func(b *graph.Builder, batch op.Batch) *graph.Node {
			logits := network.Apply(b, images.Input(b, batch, n))
			labels := b.Apply(op.GatherLabels{Batch: batch}, b.Data("labels", tensor.Int32, n), b.Header())
			return b.Apply(op.Negate{}, b.Apply(op.LogProbability{}, logits, labels))
		},
		Write: func(s *graph.Session) error {
			if err := images.Write(s); err != nil {
				return err
			}
			return graph.Write(s, "labels", 0, 0, train.Labels)
		},
	}
	c.options = llc.Options{Localization: 100, StepSizes: []float64{1e-4}, Batch: 100, Chains: 4, Steps: 500, BurnIn: 250}
	for _, p := range sample.Parameters {
		c.arrays = append(c.arrays, npz.Array{Name: p.Name, Shape: p.Shape, Values: p.Values})
	}
	x := make([]float32, len(train.Images))
	for i, pixel := range train.Images {
		x[i] = float32((float64(pixel)/255 - train.Mean[0]) / train.Std[0])
	}
	c.arrays = append(c.arrays, npz.Array{Name: "x", Shape: []int{n, 1, train.Height, train.Width}, Values: x},
		npz.Array{Name: "y", Shape: []int{n}, Values: train.Labels})
	return c, nil
}
