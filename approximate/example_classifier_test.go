package approximate_test

import (
	"fmt"
	"slices"

	"github.com/pollen-ml/pollen/approximate"
	"github.com/pollen-ml/pollen/evaluate"
	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/graph/op"
	"github.com/pollen-ml/pollen/langevin"
	"github.com/pollen-ml/pollen/layers"
	"github.com/pollen-ml/pollen/optimizers"
	"github.com/pollen-ml/pollen/samples"
	"github.com/pollen-ml/pollen/tensor"
)

// A classifier of numbers, whose classes overlap between -1 and 1.
var (
	numbers = []float64{-3, -2.5, -2, -1.5, -1, -0.5, 0, 0.5, -0.5, 0, 0.5, 1, 1.5, 2, 2.5, 3}
	classes = []int32{0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1}
)

const priorStd = 1.0

// classify is the network: numbers [B 1] to the inputs of the last layer, [B 8], and logits, [B 2].
func classify(b *graph.Builder, x *graph.Node) (inputs, logits *graph.Node) {
	inputs = layers.Sequential{layers.Linear{Outputs: 8}, layers.Tanh{}}.Apply(b, x)
	return inputs, layers.Linear{Name: "last", Outputs: 2}.Apply(b, inputs)
}

// train makes 3000 steps of momentum on minibatches of the given size, and calls visit after every
// 100 with the present weights. Weight decay stands for the Gaussian prior.
func train(batch int, visit func(samples.Sample) error) error {
	b := graph.New(tensor.Float32)
	gathered := op.Batch{Size: batch, Order: op.Shuffled}
	x := b.Apply(op.GatherRows{Batch: gathered}, b.Table("numbers", numbers, len(numbers), 1), b.Header())
	labels := b.Apply(op.GatherLabels{Batch: gathered}, b.Data("classes", tensor.Int32, len(classes)), b.Header())
	_, logits := classify(b, x)
	loss := b.Apply(op.CrossEntropy{}, logits, labels)
	decay := 1 / (float64(len(numbers)) * priorStd * priorStd)
	optimizers.Update(b, optimizers.Momentum{Decay: 0.9, WeightDecay: decay}, b.Parameters(),
		b.Gradients(loss, b.Parameters()...), b.Table("rate", []float64{0.05}))
	return b.OnHost(graph.LoadOptions{Seed: 1}, func(s *graph.Session) error {
		if err := graph.Write(s, "classes", 0, 0, classes); err != nil {
			return err
		}
		for range 30 {
			if err := s.Run(100); err != nil {
				return err
			}
			sample, err := samples.FromSession(s, 0, 1)
			if err != nil {
				return err
			}
			if err := visit(sample); err != nil {
				return err
			}
		}
		return nil
	})
}

// predict calls use with a function that returns a sample's inputs of the last layer and its
// probabilities for the numbers at.
func predict(at []float64, use func(of func(samples.Sample) (inputs, probabilities []float32, err error)) error) error {
	b := graph.New(tensor.Float32)
	inputs, logits := classify(b, b.Table("numbers", at, len(at), 1))
	b.Output("inputs", inputs)
	b.Output("probabilities", b.Apply(op.Softmax{}, logits))
	return b.OnHost(graph.LoadOptions{}, func(s *graph.Session) error {
		return use(func(sample samples.Sample) (inputs, probabilities []float32, err error) {
			if err := sample.Put(s, 0); err != nil {
				return nil, nil, err
			}
			if err := s.Evaluate(); err != nil {
				return nil, nil, err
			}
			inputs, probabilities = make([]float32, 8*len(at)), make([]float32, 2*len(at))
			if err := graph.Read(s, "inputs", 0, 0, inputs); err != nil {
				return nil, nil, err
			}
			return inputs, probabilities, graph.Read(s, "probabilities", 0, 0, probabilities)
		})
	})
}

// printAverage prints the probability of class 1 at some numbers: of one network, and averaged
// over draws.
func printAverage(network samples.Sample, draw func(draw int) (samples.Sample, error)) error {
	at := []float64{0, 2, 20}
	return predict(at, func(of func(samples.Sample) (inputs, probabilities []float32, err error)) error {
		_, single, err := of(network)
		if err != nil {
			return err
		}
		average, err := evaluate.NewPredictive(len(at), 2)
		if err != nil {
			return err
		}
		for i := range 200 {
			sample, err := draw(i)
			if err != nil {
				return err
			}
			_, probabilities, err := of(sample)
			if err != nil {
				return err
			}
			if err := average.Add(probabilities, sample.Weight); err != nil {
				return err
			}
		}
		for i, x := range at {
			fmt.Printf("at %2g: %.2f, averaged %.2f\n", x, single[2*i+1], average.Mean()[2*i+1])
		}
		return nil
	})
}

// Laplace's approximation of a classifier's last layer. Far from the data, the average over draws
// is less certain than the network at the mode.
func ExampleLaplaceApproximation() {
	var mode samples.Sample
	err := train(len(numbers), func(s samples.Sample) error {
		mode = s
		return nil
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	priors := slices.Repeat([]langevin.Prior{langevin.Gaussian(priorStd)}, len(mode.Parameters))
	laplace, err := approximate.NewLaplaceApproximation(1, mode, "last", priors)
	if err != nil {
		fmt.Println(err)
		return
	}
	err = predict(numbers, func(of func(samples.Sample) (inputs, probabilities []float32, err error)) error {
		inputs, probabilities, err := of(mode)
		if err != nil {
			return err
		}
		return laplace.Observe(inputs, probabilities)
	})
	if err == nil {
		err = printAverage(mode, laplace.Draw)
	}
	if err != nil {
		fmt.Println(err)
	}
	// Output:
	// at  0: 0.50, averaged 0.49
	// at  2: 0.93, averaged 0.90
	// at 20: 0.99, averaged 0.97
}

// SWAG of the same classifier, trained on minibatches of four. Its Gaussian is as wide as the
// learning rate makes it: this one is narrow, and draws predict nearly what the network does.
func ExampleSWAG() {
	swag, err := approximate.NewSWAG(1, 10)
	if err != nil {
		fmt.Println(err)
		return
	}
	var last samples.Sample
	err = train(4, func(s samples.Sample) error {
		if last = s; s.Step <= 1000 { // on the way to the optimum
			return nil
		}
		return swag.Collect(s)
	})
	if err == nil {
		err = printAverage(last, swag.Draw)
	}
	if err != nil {
		fmt.Println(err)
	}
	// Output:
	// at  0: 0.51, averaged 0.51
	// at  2: 0.94, averaged 0.94
	// at 20: 0.99, averaged 0.99
}
