package langevin_test

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/pollen-ml/pollen/distributions"
	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/graph/op"
	"github.com/pollen-ml/pollen/graph/op/array"
	"github.com/pollen-ml/pollen/langevin"
	"github.com/pollen-ml/pollen/layers"
	"github.com/pollen-ml/pollen/samples"
	"github.com/pollen-ml/pollen/tensor"
	"github.com/pollen-ml/pollen/tensor/random"
)

// The regression's data: y is the sine of 2x, with noise that grows from 0.1 to 0.5.
const observations = 400

func sineWithNoise() (x, y []float64) {
	y = make([]float64, observations)
	random.Normals(y, 0, random.Address{Seed: 1})
	for i := range y {
		x = append(x, -2+4*float64(i)/(observations-1))
		y[i] = math.Sin(2*x[i]) + (0.3+0.1*x[i])*y[i]
	}
	return x, y
}

// network maps x [B 1] to the mean and the standard deviation of y, both [B 1].
func network(b *graph.Builder, x *graph.Node) (mean, std *graph.Node) {
	y := layers.Sequential{layers.Linear{Outputs: 32}, layers.Tanh{}, layers.Linear{Outputs: 2}}.Apply(b, x)
	mean = b.Apply(array.Slice{Axis: 1, Start: 0, Step: 1, Count: 1}, y)
	std = b.Apply(op.Softplus{}, b.Apply(array.Slice{Axis: 1, Start: 1, Step: 1, Count: 1}, y))
	return mean, b.Apply(op.Scale{Factor: 1, Offset: 0.001}, std)
}

// A Bayesian network for regression, which also predicts its noise, on minibatches. A second
// program of the same network predicts at other x, under each sample in turn. The quantiles of
// draws from all predictions are the intervals.
func ExamplePlan_Run() {
	at := []float64{-1, 0.5, 2}
	predicted, err := samplePredictions(at)
	if err != nil {
		fmt.Println(err)
		return
	}
	for i, x := range at {
		draws := predicted[i]
		slices.Sort(draws)
		fmt.Printf("at %4.1f: %4.1f, 90 %% in %4.1f to %.1f\n", x, draws[len(draws)/2], draws[len(draws)/20], draws[len(draws)*19/20])
	}
	// Output:
	// at -1.0: -0.9, 90 % in -1.3 to -0.5
	// at  0.5:  1.0, 90 % in  0.4 to 1.5
	// at  2.0: -0.6, 90 % in -1.6 to 0.3
}

// samplePredictions samples the posterior by SGHMC and returns, for each x, a draw of y for each
// sample.
func samplePredictions(at []float64) (draws [][]float64, err error) {
	plan, sampler := langevin.Plan{Steps: 10000, BurnIn: 5000, Thinning: 50}, langevin.SGHMC{Friction: 0.1}
	training, err := regression(plan, sampler)
	if err != nil {
		return nil, err
	}
	b := graph.New(tensor.Float32)
	mean, std := network(b, b.Table("x", at, len(at), 1))
	b.Output("y", distributions.Normal{Mean: distributions.Node(mean), Std: distributions.Node(std)}.RSample(b, len(at), 1))

	draws = make([][]float64, len(at))
	err = b.OnHost(graph.LoadOptions{Seed: 2}, func(predictor *graph.Session) error {
		y := make([]float32, len(at))
		predict := func(sample samples.Sample) error {
			if err := sample.Put(predictor, 0); err != nil {
				return err
			}
			if err := predictor.Run(1); err != nil { // with new random numbers, unlike Evaluate
				return err
			}
			if err := graph.Read(predictor, "y", 0, 0, y); err != nil {
				return err
			}
			for i, v := range y {
				draws[i] = append(draws[i], float64(v))
			}
			return nil
		}
		return training.OnHost(graph.LoadOptions{Seed: 1, Chains: 4}, func(s *graph.Session) error {
			return plan.Run(context.Background(), s, graph.MetricRows, func(w langevin.Window) error {
				for chain := 0; w.Sample && chain < s.Chains(); chain++ {
					sample, err := samples.FromSession(s, chain, 1)
					if err != nil {
						return err
					}
					if err := predict(sample); err != nil {
						return err
					}
				}
				return nil
			})
		})
	})
	return draws, err
}

// regression returns the graph of the training.
func regression(plan langevin.Plan, sampler langevin.Sampler) (*graph.Builder, error) {
	b := graph.New(tensor.Float32)
	x, y := sineWithNoise()
	batch := op.Batch{Size: 50, Order: op.Shuffled}
	inputs := b.Apply(op.GatherRows{Batch: batch}, b.Table("x", x, observations, 1), b.Header())
	targets := b.Apply(op.GatherRows{Batch: batch}, b.Table("y", y, observations, 1), b.Header())
	mean, std := network(b, inputs)
	likelihood := distributions.Normal{Mean: distributions.Node(mean), Std: distributions.Node(std)}
	loss := b.Apply(op.Negate{}, b.Apply(op.Mean{}, likelihood.LogProb(b, targets)))

	posterior := langevin.Posterior{DataSize: observations, Prior: langevin.Gaussian(1)}
	temperatures, err := plan.Temperatures(sampler, 1)
	if err != nil {
		return nil, err
	}
	stepSizes := posterior.StepSizes(slices.Repeat([]float64{0.001}, plan.Steps))
	return b, langevin.Attach(b, sampler, posterior, loss, stepSizes, temperatures)
}
