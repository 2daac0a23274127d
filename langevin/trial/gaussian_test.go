package trial

import (
	"testing"

	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/langevin"
)

// distorted is SGLD with other inputs of its updates.
type distorted struct {
	langevin.SGLD
	change *func(in *langevin.UpdateInputs)
}

func (d distorted) Update(b *graph.Builder, in langevin.UpdateInputs, parameter, gradient *graph.Node) *graph.Node {
	(*d.change)(&in)
	return d.SGLD.Update(b, in, parameter, gradient)
}

// TestGaussianTest: SGLD has its variances. Without the prior, with another one or another N, and
// at another temperature, every curvature has a failure.
func TestGaussianTest(t *testing.T) {
	const h, temperature = 0.1, 0.7
	variance := func(k float64) float64 { return temperature / k / (1 - h*k/2) }
	right := GaussianTest{Sampler: langevin.SGLD{}, StepSize: h, Temperature: temperature, Steps: 100, Variance: variance}
	right.Run(t)
	for name, change := range map[string]func(in *langevin.UpdateInputs){
		"no prior":      func(in *langevin.UpdateInputs) { in.Prior = langevin.Flat() },
		"twice N":       func(in *langevin.UpdateInputs) { in.DataSize *= 2 },
		"a wider prior": func(in *langevin.UpdateInputs) { in.Prior = langevin.Gaussian(2) },
	} {
		wrong := right
		wrong.Sampler = distorted{change: &change}
		if found := wrong.failures(t); len(found) < Classes {
			t.Errorf("%s: %d failures, want at least %d: %q", name, len(found), Classes, found)
		}
	}
	wrong := right
	wrong.Temperature = 1
	if found := wrong.failures(t); len(found) < Classes {
		t.Errorf("another temperature: %d failures, want at least %d: %q", len(found), Classes, found)
	}
}
