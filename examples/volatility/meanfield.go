package main

import (
	"context"
	"math"

	"github.com/pollen-ml/pollen/distributions"
	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/graph/op"
	"github.com/pollen-ml/pollen/langevin"
	"github.com/pollen-ml/pollen/optimizers"
	"github.com/pollen-ml/pollen/tensor"
)

// fit is how Bayes by Backprop runs: the gradients of an epoch are means over replicas, and q is the mean over the epochs after burn-in.
type fit struct {
	replicas, epochs, burnIn int
	rate                     float64 // of the first epoch; it falls to 0 along a cosine
}

// startSpread is the standard deviation of a step of the walk in q at the start.
const startSpread = 0.0005

// factor is a normal distribution of a parameter's elements, which are independent.
type factor struct {
	name            string
	mean, deviation []float64
}

// attach makes a factor's trainable parameters, which start as the factor is, and replicas of it, [R N].
func (f *factor) attach(b *graph.Builder, replicas int) (draws, logDeviation *graph.Node) {
	start := func(value func(i int) float64) graph.Initializer {
		return func(_ uint64, _ uint32, _ uint16, _ tensor.Shape, values []float64) {
			for i := range values {
				values[i] = value(i)
			}
		}
	}
	mean := b.Parameter(f.name+".mean", start(func(i int) float64 { return f.mean[i] }), len(f.mean))
	logDeviation = b.Parameter(f.name+".log deviation", start(func(i int) float64 { return math.Log(f.deviation[i]) }), len(f.mean))
	noise := b.Apply(op.Noise{Stream: b.Stream(), As: op.ViewAs(replicas, len(f.mean))}, b.Header())
	return b.Apply(op.Add{}, mean, b.Apply(op.Multiply{}, b.Apply(op.Exp{}, logDeviation), noise)), logDeviation
}

// add adds a share of what a factor's parameters are in a session.
func (f *factor) add(session *graph.Session, share float64) error {
	values := make([]float32, len(f.mean))
	if err := session.ReadFloats(f.name+".mean", 0, values); err != nil {
		return err
	}
	for i, mean := range values {
		f.mean[i] += share * float64(mean)
	}
	if err := session.ReadFloats(f.name+".log deviation", 0, values); err != nil {
		return err
	}
	for i, logDeviation := range values {
		f.deviation[i] += share * math.Exp(float64(logDeviation))
	}
	return nil
}

// bayesByBackprop fits independent normals to the logarithms of deviation and freedom and to the walk's steps from day to day. It raises
// E[joint] + entropy by RMSProp, which is pSGLD at temperature 0. The posterior knows sums of steps far better than steps, which q cannot say: it
// makes the steps small, and then the deviation, which is their size. 1500 epochs are not its end, but where fits of this kind are usually
// stopped: the more epochs, and the larger the rate, the smaller the deviation, and the wider the steps, which start at startSpread.
func bayesByBackprop(returns []float64, f fit) (result, error) {
	r := result{method: "Bayes by Backprop"}
	walk, _ := smooth(returns, startDeviation)
	factors := []*factor{{"log deviation", []float64{math.Log(startDeviation)}, []float64{0.1}},
		{"log freedom", []float64{math.Log(startFreedom)}, []float64{0.1}}, {"steps", make([]float64, len(walk)), make([]float64, len(walk))}}
	for i := range walk {
		factors[2].mean[i], factors[2].deviation[i] = walk[i]-walk[max(i-1, 0)], startSpread
	}
	factors[2].mean[0] = walk[0]
	b := graph.New(tensor.Float32)
	var draws, entropies [3]*graph.Node
	for i, factor := range factors {
		draws[i], entropies[i] = factor.attach(b, f.replicas)
	}
	density := joint(b, returns, draws[0], draws[1], b.Apply(op.CumulativeSum{Axis: 1}, draws[2]))
	bound := b.Apply(op.Add{}, share(b, density, f.replicas), distributions.Total(b, entropies[:]...))
	gradients := b.Gradients(share(b, b.Apply(op.Negate{}, bound), len(returns)), b.Parameters()...)
	rates, err := optimizers.Cosine{First: f.rate}.Rates(f.epochs)
	if err != nil {
		return r, err
	}
	optimizers.Update(b, optimizers.RMSProp{Decay: 0.99, Epsilon: 1e-5}, b.Parameters(), gradients, b.Table("rates", rates))
	plan := langevin.Plan{Steps: f.epochs, BurnIn: f.burnIn, Thinning: 1}
	err = b.OnHost(graph.LoadOptions{Seed: 1, Chains: 1}, func(session *graph.Session) error {
		for _, factor := range factors { // where they started is in the session
			clear(factor.mean)
			clear(factor.deviation)
		}
		return plan.Run(context.Background(), session, 1, func(p langevin.Progress) error {
			for i := 0; p.Sample && i < len(factors); i++ {
				if err := factors[i].add(session, 1/float64(plan.Samples())); err != nil {
					return err
				}
			}
			return nil
		})
	})
	r.deviation = logNormal(factors[0].mean[0], factors[0].deviation[0])
	r.freedom = logNormal(factors[1].mean[0], factors[1].deviation[0])
	mean, variance := 0.0, 0.0
	for i, step := range factors[2].mean {
		mean, variance = mean+step, variance+factors[2].deviation[i]*factors[2].deviation[i]
		r.bands = append(r.bands, normal(mean, math.Sqrt(variance)))
	}
	return r, err
}
