package layers_test

import (
	"fmt"
	"math"

	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/graph/op"
	"github.com/pollen-ml/pollen/layers"
	"github.com/pollen-ml/pollen/optimizers"
	"github.com/pollen-ml/pollen/samples"
	"github.com/pollen-ml/pollen/tensor"
)

const (
	curves = 256 // rows of the data
	points = 16  // of a curve
)

// An autoencoder of curves a sin(x) + b cos(x): its code of two numbers suffices for 16 points. One
// graph trains encoder and decoder by Adam. Another one, with the same layers and therefore the
// same names of parameters, gets the trained weights and encodes other curves.
func Example_autoencoder() {
	var curve []float64
	for i := range curves {
		a, b := math.Sin(float64(3*i)), math.Cos(float64(5*i))
		for x := range points {
			curve = append(curve, a*math.Sin(float64(x)/3)+b*math.Cos(float64(x)/3))
		}
	}
	encoder := layers.Sequential{layers.Linear{Outputs: 16}, layers.Tanh{}, layers.Linear{Outputs: 2}}
	decoder := layers.Sequential{layers.Linear{Outputs: 16}, layers.Tanh{}, layers.Linear{Outputs: points}}

	const steps = 3000
	rates, err := optimizers.Cosine{First: 0.01}.Rates(steps)
	if err != nil {
		fmt.Println(err)
		return
	}
	b := graph.New(tensor.Float32)
	minibatch := op.GatherRows{Batch: op.Batch{Size: 32, Order: op.Shuffled}}
	x := b.Apply(minibatch, b.Table("curves", curve, curves, points), b.Header())
	loss := b.Apply(op.SquaredError{}, decoder.Apply(b, encoder.Apply(b, x)), x)
	gradients := b.Gradients(loss, b.Parameters()...)
	optimizers.Update(b, optimizers.Adam{Beta1: 0.9, Beta2: 0.999, Epsilon: 1e-8}, b.Parameters(), gradients, b.Table("rates", rates))
	b.Record("loss", loss) // after Gradients

	applied := graph.New(tensor.Float32)
	input := applied.Data("curve", tensor.Float32, 1, points)
	code := encoder.Apply(applied, input)
	applied.Output("code", code)
	applied.Output("curve again", decoder.Apply(applied, code))

	err = b.OnHost(graph.LoadOptions{Seed: 1}, func(training *graph.Session) error {
		for training.Steps() < steps { // a session keeps the metrics of the last MetricRows steps
			if err := training.Run(min(graph.MetricRows, steps-int(training.Steps()))); err != nil {
				return err
			}
		}
		fmt.Println("loss below 0.05:", training.Metric(0, "loss", steps-1) < 0.05)
		trained, err := samples.FromSession(training, 0, 1)
		if err != nil {
			return err
		}
		return applied.OnHost(graph.LoadOptions{}, func(s *graph.Session) error {
			if err := trained.Put(s, 0); err != nil {
				return err
			}
			var curve, again [points]float32
			for x := range curve {
				curve[x] = float32(0.3*math.Sin(float64(x)/3) - 0.6*math.Cos(float64(x)/3))
			}
			if err := graph.Write(s, "curve", 0, 0, curve[:]); err != nil {
				return err
			}
			if err := s.Evaluate(); err != nil {
				return err
			}
			if err := graph.Read(s, "curve again", 0, 0, again[:]); err != nil {
				return err
			}
			worst := 0.0
			for x := range curve {
				worst = max(worst, math.Abs(float64(again[x]-curve[x])))
			}
			fmt.Println("another curve, within 0.1:", worst < 0.1)
			return nil
		})
	})
	if err != nil {
		fmt.Println(err)
	}
	// Output:
	// loss below 0.05: true
	// another curve, within 0.1: true
}
