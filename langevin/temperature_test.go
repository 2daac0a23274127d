package langevin_test

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/graph/op"
	"github.com/pollen-ml/pollen/langevin"
	"github.com/pollen-ml/pollen/tensor"
)

// The parameters of this test lie in two layers, the first of which has two.
var layerSizes = []struct {
	name string
	n    int
	k    float64
}{{"a.weight", 4097, 0.5}, {"a.bias", 3, 2}, {"b.weight", 65, 1}}

const thermometerDataSize = 20

func thermometerSession(t *testing.T, dtype tensor.DType) *graph.Session {
	t.Helper()
	b := graph.New(dtype)
	var total *graph.Node
	for _, p := range layerSizes {
		w := b.Parameter(p.name, normal(func(int) float64 { return 1 }), p.n)
		loss := target{field: bowl{p.k, p.k}, dataSize: thermometerDataSize}.loss(b, w)
		if total != nil {
			loss = b.Apply(op.Add{}, total, loss)
		}
		total = loss
	}
	posterior := langevin.Posterior{
		DataSize: thermometerDataSize, Prior: langevin.Gaussian(2), Layers: map[string]langevin.Prior{"b": langevin.Laplace(1)},
	}
	if err := langevin.Attach(b, langevin.SGLD{}, posterior, total, []float64{0.1}, []float64{1}); err != nil {
		t.Fatal(err)
	}
	b.Record("loss", total) // a metric that is not the thermometer's
	return load(t, b, graph.LoadOptions{Seed: 1, Chains: 3}, 2)
}

// virials are, for each parameter, the sums of theta . grad U over the chains' present states.
func virials(t *testing.T, s *graph.Session) []float64 {
	t.Helper()
	sums := make([]float64, len(layerSizes))
	for i, p := range layerSizes {
		prior := langevin.Gaussian(2)
		if p.name == "b.weight" {
			prior = langevin.Laplace(1)
		}
		for chain := range s.Chains() {
			for _, x := range values(t, s, p.name, chain, p.n) {
				sums[i] += x * (p.k*x + priorSlope(prior, x))
			}
		}
	}
	return sums
}

// TestThermometer compares with the definition theta . grad U / d, by layer and over all, of the states before each step.
func TestThermometer(t *testing.T) {
	for _, dtype := range []tensor.DType{tensor.Float32, tensor.Float64} {
		t.Run(fmt.Sprint(dtype), func(t *testing.T) {
			tolerance := 1e-12
			if dtype == tensor.Float32 {
				tolerance = 1e-5
			}
			session, ahead := thermometerSession(t, dtype), thermometerSession(t, dtype)
			thermometer := langevin.NewThermometer(session.Program(), thermometerDataSize)
			if !slices.Equal(thermometer.Layers, []string{"a", "b"}) {
				t.Fatalf("layers %q, want a and b", thermometer.Layers)
			}
			check := func(sums []float64, steps int) {
				t.Helper()
				if got := thermometer.Steps(); got != steps*3 {
					t.Errorf("%d steps, want %d of 3 chains", got, steps)
				}
				n := float64(steps * 3)
				for i, c := range []struct{ got, want float64 }{
					{thermometer.Layer(0), (sums[0] + sums[1]) / (4097 + 3) / n},
					{thermometer.Layer(1), sums[2] / 65 / n},
					{thermometer.Temperature(), (sums[0] + sums[1] + sums[2]) / (4097 + 3 + 65) / n},
				} {
					if !(math.Abs(c.got/c.want-1) < tolerance) {
						t.Errorf("temperature %d is %v, want %v", i, c.got, c.want)
					}
				}
			}
			// The other session makes the same steps one by one.
			expect := func(steps int) []float64 {
				sums := make([]float64, len(layerSizes))
				for range steps {
					for i, v := range virials(t, ahead) {
						sums[i] += v
					}
					advance(t, ahead, 1)
				}
				return sums
			}
			first := expect(3)
			advance(t, session, 3)
			thermometer.Observe(session, 0, 3)
			check(first, 3)
			second := expect(128)
			advance(t, session, 128)
			thermometer.Observe(session, 3, 131)
			for i := range first {
				first[i] += second[i]
			}
			check(first, 131)
			thermometer.Reset()
			if thermometer.Steps() != 0 {
				t.Errorf("%d steps after a reset", thermometer.Steps())
			}
			third := expect(1)
			advance(t, session, 1)
			thermometer.Observe(session, 131, 132)
			check(third, 1)
		})
	}
}
