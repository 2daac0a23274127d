package main

import (
	"context"
	"math"
	"slices"

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

// meanField is the approximation of Bayes by Backprop: independent normals of ln deviation, ln freedom and the walk's steps, the first of which is s_0.
type meanField struct {
	logDeviation, logFreedom normalFactor
	steps                    []normalFactor
}

type normalFactor struct{ mean, variance float64 }

// result is q as the result of a method.
func (q meanField) result(method string) result {
	r := result{
		method:    method,
		deviation: logNormal(q.logDeviation.mean, math.Sqrt(q.logDeviation.variance)),
		freedom:   logNormal(q.logFreedom.mean, math.Sqrt(q.logFreedom.variance)),
	}
	for _, day := range q.walk() {
		r.bands = append(r.bands, normal(day.mean, math.Sqrt(day.variance)))
	}
	return r
}

// walk is the distribution of each day's s.
func (q meanField) walk() []normalFactor {
	days := make([]normalFactor, len(q.steps))
	var sum normalFactor
	for i, step := range q.steps {
		sum.mean, sum.variance = sum.mean+step.mean, sum.variance+step.variance
		days[i] = sum
	}
	return days
}

// start is where Bayes by Backprop starts: at the walk that fits the returns best with startDeviation.
func start(returns []float64) meanField {
	walk, _ := smooth(returns, startDeviation)
	q := meanField{normalFactor{math.Log(startDeviation), 0.01}, normalFactor{math.Log(startFreedom), 0.01}, make([]normalFactor, len(walk))}
	for i := range walk {
		q.steps[i] = normalFactor{walk[i] - walk[max(i-1, 0)], startSpread * startSpread}
	}
	q.steps[0].mean = walk[0]
	return q
}

// factors are trainable parameters of n normals: means and logarithms of standard deviations.
type factors struct {
	name string
	of   []normalFactor // where they start, and then means over epochs
}

// attach makes the parameters, and replicas of draws, [R N].
func (f *factors) attach(b *graph.Builder, replicas int) (draws, logDeviations *graph.Node) {
	start := func(value func(f normalFactor) float64) graph.Initializer {
		of := slices.Clone(f.of)
		return func(_ uint64, _ uint32, _ uint16, _ tensor.Shape, values []float64) {
			for i := range values {
				values[i] = value(of[i])
			}
		}
	}
	means := b.Parameter(f.name+".mean", start(func(f normalFactor) float64 { return f.mean }), len(f.of))
	logDeviations = b.Parameter(f.name+".log deviation", start(func(f normalFactor) float64 { return math.Log(f.variance) / 2 }), len(f.of))
	noise := b.Apply(op.Noise{Stream: b.Stream(), As: op.ViewAs(replicas, len(f.of))}, b.Header())
	return b.Apply(op.Add{}, means, b.Apply(op.Multiply{}, b.Apply(op.Exp{}, logDeviations), noise)), logDeviations
}

// observe makes f the mean of a session's parameters over epochs, of which this one is that share: of means, and of standard deviations.
func (f *factors) observe(session *graph.Session, share float64) error {
	values := make([]float32, len(f.of))
	if err := session.ReadFloats(f.name+".mean", 0, values); err != nil {
		return err
	}
	for i, mean := range values {
		f.of[i].mean += share * (float64(mean) - f.of[i].mean)
	}
	if err := session.ReadFloats(f.name+".log deviation", 0, values); err != nil {
		return err
	}
	for i, logDeviation := range values {
		deviation := math.Sqrt(f.of[i].variance)
		deviation += share * (math.Exp(float64(logDeviation)) - deviation)
		f.of[i].variance = deviation * deviation
	}
	return nil
}

// bayesByBackprop fits independent normals to the logarithms of deviation and freedom and to the walk's steps from day to day. It raises
// E[joint] + entropy by RMSProp, which is pSGLD at temperature 0. The posterior knows sums of steps far better than steps, which q cannot say: it
// makes the steps small, and then the deviation, which is their size. 1500 epochs are not its end, but where fits of this kind are usually
// stopped, see optimum.
func bayesByBackprop(returns []float64, f fit) (meanField, error) {
	q := start(returns)
	b := graph.New(tensor.Float32)
	all := []*factors{{"log deviation", []normalFactor{q.logDeviation}}, {"log freedom", []normalFactor{q.logFreedom}}, {"steps", q.steps}}
	var draws, entropies [3]*graph.Node
	for i, factors := range all {
		draws[i], entropies[i] = factors.attach(b, f.replicas)
	}
	density := joint(b, returns, draws[0], draws[1], b.Apply(op.CumulativeSum{Axis: 1}, draws[2]))
	bound := b.Apply(op.Add{}, share(b, density, f.replicas), distributions.Total(b, entropies[:]...))
	gradients := b.Gradients(share(b, b.Apply(op.Negate{}, bound), len(returns)), b.Parameters()...)
	rates, err := optimizers.Cosine{First: f.rate}.Rates(f.epochs)
	if err != nil {
		return q, err
	}
	optimizers.Update(b, optimizers.RMSProp{Decay: 0.99, Epsilon: 1e-5}, b.Parameters(), gradients, b.Table("rates", rates))
	plan := langevin.Plan{Steps: f.epochs, BurnIn: f.burnIn, Thinning: 1}
	err = b.OnHost(graph.LoadOptions{Seed: 1, Chains: 1}, func(session *graph.Session) error {
		return plan.Run(context.Background(), session, 1, func(p langevin.Progress) error {
			for i := 0; p.Sample && i < len(all); i++ {
				if err := all[i].observe(session, 1/float64(p.To-f.burnIn)); err != nil {
					return err
				}
			}
			return nil
		})
	})
	return meanField{all[0].of[0], all[1].of[0], all[2].of}, err
}
