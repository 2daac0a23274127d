package langevin_test

import (
	"context"
	"math"
	"strings"
	"testing"

	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/graph/op"
	"github.com/pollen-ml/pollen/langevin"
	"github.com/pollen-ml/pollen/langevin/trial"
	"github.com/pollen-ml/pollen/layers"
	"github.com/pollen-ml/pollen/tensor"
)

// When all examples are equal, control variates give the same estimate as any minibatch: KSGLD
// makes the same moves with and without them.
func TestKSGLDByControlVariates(t *testing.T) {
	const dataSize, batch, steps = 12, 4, 9
	run := func(variates bool) []float64 {
		b := graph.New(tensor.Float64)
		x, labels := op.Minibatch(b, op.Batch{Size: batch, Order: op.Shuffled}, tensor.Shape{dataSize, 1, 3, 3}, []float64{0.5}, []float64{0.2})
		network := layers.Sequential{layers.Flatten{}, layers.Linear{Outputs: 5}, layers.ReLU{}, layers.Linear{Outputs: 3}}
		loss := b.Apply(op.CrossEntropy{}, network.Apply(b, x), labels)
		posterior := langevin.Posterior{DataSize: dataSize, Prior: langevin.Gaussian(0.5)}
		sampler := langevin.KSGLD{Alpha: 0.9, Damping: 0.1, Refresh: 2, FreezeAt: 6}
		plan := langevin.Plan{Steps: steps, Thinning: steps, BurnIn: 0}
		h, temperatures := make([]float64, steps), make([]float64, steps)
		for i := range h {
			h[i] = 0.02 // without noise, whose streams differ
		}
		var hooks []langevin.Hook
		if variates {
			anchor, err := langevin.ControlVariates{BatchSize: batch, Refresh: 4}.Attach(b, sampler, posterior, loss, h, temperatures)
			if err != nil {
				t.Fatal(err)
			}
			hooks = append(hooks, anchor)
		} else if err := langevin.Attach(b, sampler, posterior, loss, h, temperatures); err != nil {
			t.Fatal(err)
		}
		s := trial.Load(t, b, graph.LoadOptions{Seed: trial.RunSeed}, 2)
		images, classes := make([]byte, dataSize*9), make([]int32, dataSize)
		for i := range images {
			images[i] = byte(20 * (i % 9))
		}
		for i := range classes {
			classes[i] = 2
		}
		if err := graph.Write(s, "images", 0, 0, images); err != nil {
			t.Fatal(err)
		}
		if err := graph.Write(s, "labels", 0, 0, classes); err != nil {
			t.Fatal(err)
		}
		if err := plan.Run(context.Background(), s, steps, func(langevin.Window) error { return nil }, hooks...); err != nil {
			t.Fatal(err)
		}
		var all []float64
		for _, p := range s.Program().Parameters() {
			all = append(all, trial.Values(t, s, p.Name, 0, p.Shape.Elements())...)
		}
		return all
	}
	plain, variates := run(false), run(true)
	for i, want := range plain {
		if !(math.Abs(variates[i]-want) <= 1e-9) {
			t.Fatalf("parameter %d is %v by control variates, want %v", i, variates[i], want)
		}
	}
}

// The Hessian's diagonal is the minibatch's, without control variates: Gamma is refused with them.
func TestCurvatureByControlVariates(t *testing.T) {
	b := graph.New(tensor.Float64)
	w := b.Parameter("w", nil, 3)
	loss := b.Apply(op.Sum{}, b.Apply(op.Squared{}, w))
	sampler := langevin.PSGLD{Alpha: 0.9, Lambda: 1, Gamma: langevin.GammaHutchinson}
	_, err := langevin.ControlVariates{BatchSize: 2}.Attach(b, sampler, langevin.Posterior{DataSize: 4}, loss, []float64{1}, []float64{1})
	if err == nil || !strings.Contains(err.Error(), `control variates: psgld: Gamma must be "frozen" or "none", got "hutchinson"`) {
		t.Errorf("got %v, want an error about Gamma", err)
	}
}
