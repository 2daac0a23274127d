package langevin_test

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/graph/op"
	"github.com/pollen-ml/pollen/langevin"
	"github.com/pollen-ml/pollen/langevin/trial"
	"github.com/pollen-ml/pollen/tensor"
)

// TestPotential compares N loss - log prior, and its gradient, with a loop over elements and with
// finite differences.
func TestPotential(t *testing.T) {
	const n, dataSize = 4099, 70
	for _, prior := range []langevin.Prior{langevin.Flat(), langevin.Gaussian(0.4), langevin.Laplace(0.7), langevin.StudentT(3, 0.5)} {
		for _, dtype := range []tensor.DType{tensor.Float32, tensor.Float64} {
			b := graph.New(dtype)
			start := trial.Normal(func(int) float64 { return 1 })
			first, second := b.Parameter("a.weight", start, n), b.Parameter("b.weight", start, 3, 5)
			loss := b.Apply(op.Add{}, b.Apply(op.Scale{Factor: 0.1}, trial.SumOfSquares(b, first)), b.Apply(op.Scale{Factor: 0.2}, trial.SumOfSquares(b, second)))
			posterior := langevin.Posterior{DataSize: dataSize, Prior: prior, Layers: map[string]langevin.Prior{"b": langevin.Gaussian(2)}}
			potential := posterior.Potential(b, loss)
			b.Output("U", potential)
			for i, gradient := range b.Gradients(b.Apply(op.Scale{Factor: 4}, potential), first, second) {
				b.Output(fmt.Sprint("gradient ", i), gradient)
			}
			session := trial.Load(t, b, graph.LoadOptions{Seed: trial.RunSeed}, 2)
			trial.Advance(t, session, 1)
			want, scale := 0.0, 0.0
			add := func(x, factor float64, prior langevin.Prior) {
				want += dataSize*factor*x*x - prior.LogDensity(x)
				scale += dataSize*factor*x*x + math.Abs(prior.LogDensity(x))
			}
			slopes := [][]float64{trial.Values(t, session, "gradient 0", 0, n), trial.Values(t, session, "gradient 1", 0, 15)}
			epsilon := map[tensor.DType]float64{tensor.Float32: 0x1p-24, tensor.Float64: 0x1p-53}[dtype]
			for i, name := range []string{"a.weight", "b.weight"} {
				factor, prior := []float64{0.1, 0.2}[i], []langevin.Prior{prior, langevin.Gaussian(2)}[i]
				for j, x := range trial.Values(t, session, name, 0, len(slopes[i])) {
					add(x, factor, prior)
					const d = 1e-6
					slope := 2*dataSize*factor*x - (prior.LogDensity(x+d)-prior.LogDensity(x-d))/(2*d)
					if got := slopes[i][j] / 4; math.Abs(got-slope) > 1e-7+8*epsilon*math.Abs(slope) && math.Abs(x) > 2*d {
						t.Fatalf("%v, %v: gradient of %s at %d is %v, want %v", prior, dtype, name, j, got, slope)
					}
				}
			}
			if got := trial.Values(t, session, "U", 0, 1)[0]; math.Abs(got-want) > 8*epsilon*scale*math.Sqrt(n) {
				t.Errorf("%v, %v: U is %v, want %v", prior, dtype, got, want)
			}
		}
	}
}

func TestPotentialRefuses(t *testing.T) {
	for want, c := range map[string]struct {
		posterior langevin.Posterior
		loss      func(b *graph.Builder, w *graph.Node) *graph.Node
	}{
		"DataSize must be 1 to 2147483647, got 0": {langevin.Posterior{}, trial.SumOfSquares},
		"must be a scalar":                        {langevin.Posterior{DataSize: 1}, func(_ *graph.Builder, w *graph.Node) *graph.Node { return w }},
		"the loss must not be nil":                {langevin.Posterior{DataSize: 1}, func(*graph.Builder, *graph.Node) *graph.Node { return nil }},
		`a prior for layer "no"`:                  {langevin.Posterior{DataSize: 1, Layers: map[string]langevin.Prior{"no": langevin.Flat()}}, trial.SumOfSquares},
	} {
		b := graph.New(tensor.Float64)
		loss := c.loss(b, b.Parameter("w", nil, 2))
		if u := c.posterior.Potential(b, loss); u != nil || b.Err() == nil || !strings.Contains(b.Err().Error(), want) {
			t.Errorf("error %v, want one with %q", b.Err(), want)
		}
	}
}
