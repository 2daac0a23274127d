package main

import (
	"fmt"
	"math"

	"github.com/pollen-ml/pollen/distributions"
	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/graph/op"
	"github.com/pollen-ml/pollen/optimizers"
	"github.com/pollen-ml/pollen/tensor"
)

// normal is a component of a mixture.
type normal struct{ mean, std, weight float64 }

// mixture is a mixture of normals. Its weights add up to 1.
type mixture []normal

// fit is a fitted mixture with its loss, the mean negative log-likelihood of the data, and the norm
// of the gradient there.
type fit struct {
	name string
	mixture
	loss, slope float64
}

func (m mixture) density(x float64) float64 {
	sum := 0.0
	for _, n := range m {
		z := (x - n.mean) / n.std
		sum += n.weight * math.Exp(-z*z/2) / n.std / math.Sqrt(2*math.Pi)
	}
	return sum
}

// The names of a component's parameters, which are unconstrained: the mean, the logarithm of the
// standard deviation, and the logit of the weight.
const (
	meanName         = "mean %d"
	logDeviationName = "log std %d"
	logitName        = "logit %d"
)

// descend returns the mixture after some steps of gradient descent with momentum on the loss,
// starting at m. The returned loss and slope are those before the last step.
func (m mixture) descend(data []float64, steps int) (f fit, err error) {
	const rate = 0.15
	b := graph.New(tensor.Float64)
	parameter := func(name string, k int, start float64) *graph.Node {
		return b.Parameter(fmt.Sprintf(name, k), func(_ uint64, _ uint32, _ uint16, _ tensor.Shape, values []float64) { values[0] = start })
	}
	var density distributions.Mixture
	for k, n := range m {
		std, _ := distributions.Constrained(b, parameter(logDeviationName, k, math.Log(n.std)), distributions.Exp{})
		mean, logit := parameter(meanName, k, n.mean), parameter(logitName, k, math.Log(n.weight))
		density.Components = append(density.Components, distributions.Normal{Mean: distributions.Node(mean), Std: distributions.Node(std)})
		density.Logits = append(density.Logits, distributions.Node(logit))
	}
	loss := b.Apply(op.Negate{}, b.Apply(op.Mean{}, density.LogProb(b, b.Table("data", data))))
	gradients := b.Gradients(loss, b.Parameters()...)
	var squares []*graph.Node
	for _, gradient := range gradients {
		squares = append(squares, b.Apply(op.Squared{}, gradient))
	}
	b.Output("loss", loss)
	b.Output("squared slope", distributions.Total(b, squares...))
	optimizers.Update(b, optimizers.Momentum{Decay: 0.9}, b.Parameters(), gradients, b.Table("rates", []float64{rate}))
	values := map[string]float64{}
	err = b.OnHost(graph.LoadOptions{Chains: 1}, func(session *graph.Session) error {
		if err := session.Run(steps); err != nil {
			return err
		}
		names := []string{"loss", "squared slope"}
		for k := range m {
			names = append(names, fmt.Sprintf(meanName, k), fmt.Sprintf(logDeviationName, k), fmt.Sprintf(logitName, k))
		}
		for _, name := range names {
			var value [1]float64
			if err := graph.Read(session, name, 0, 0, value[:]); err != nil {
				return err
			}
			values[name] = value[0]
		}
		return nil
	})
	if err != nil {
		return f, err
	}
	f.loss, f.slope = values["loss"], math.Sqrt(values["squared slope"])
	total := 0.0
	for k := range m {
		n := normal{values[fmt.Sprintf(meanName, k)], math.Exp(values[fmt.Sprintf(logDeviationName, k)]), math.Exp(values[fmt.Sprintf(logitName, k)])}
		f.mixture = append(f.mixture, n)
		total += n.weight
	}
	for k := range f.mixture {
		f.mixture[k].weight /= total
	}
	return f, nil
}

// around returns the changes of the loss when the two components move apart, their means by 0.2 and
// the logarithms of their standard deviations by 0.06, with the upper one wider and with the lower
// one wider.
func (f fit) around(data []float64) (upperWider, lowerWider float64) {
	loss := func(wider float64) float64 {
		moved := mixture{f.mixture[0], f.mixture[1]}
		for k, sign := range []float64{-1, 1} {
			moved[k].mean += 0.1 * sign
			moved[k].std *= math.Exp(wider * sign)
		}
		sum := 0.0
		for _, x := range data {
			sum -= math.Log(moved.density(x))
		}
		return sum/float64(len(data)) - f.loss
	}
	return loss(0.03), loss(-0.03)
}
