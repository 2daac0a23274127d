package diagnostics_test

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/pollen-ml/pollen/diagnostics"
	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/graph/op"
	"github.com/pollen-ml/pollen/langevin"
	"github.com/pollen-ml/pollen/langevin/trial"
	"github.com/pollen-ml/pollen/tensor"
)

// The parameters of this test lie in two layers; the first has two.
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
		w := b.Parameter(p.name, trial.Normal(func(int) float64 { return 1 }), p.n)
		loss := trial.Target{Field: trial.DiagonalGaussian{Smallest: p.k, Largest: p.k}, DataSize: thermometerDataSize}.Loss(b, w)
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
	return trial.Load(t, b, graph.LoadOptions{Seed: 1, Chains: 3}, 2)
}

// virials are, for each parameter, the sums of theta . grad U over the chains' present states.
func virials(t *testing.T, s *graph.Session) []float64 {
	t.Helper()
	sums := make([]float64, len(layerSizes))
	for i, p := range layerSizes {
		slope := func(x float64) float64 { return x / 4 } // of the prior, Gaussian(2)
		if p.name == "b.weight" {
			slope = func(x float64) float64 { return math.Copysign(1, x) } // Laplace(1)
		}
		for chain := range s.Chains() {
			for _, x := range trial.Values(t, s, p.name, chain, p.n) {
				sums[i] += x * (p.k*x + slope(x))
			}
		}
	}
	return sums
}

// TestThermometer compares with the definition theta . grad U / d for the states before each step,
// by layer and overall.
func TestThermometer(t *testing.T) {
	for _, dtype := range []tensor.DType{tensor.Float32, tensor.Float64} {
		t.Run(fmt.Sprint(dtype), func(t *testing.T) {
			tolerance := 1e-12
			if dtype == tensor.Float32 {
				tolerance = 1e-5
			}
			session, ahead := thermometerSession(t, dtype), thermometerSession(t, dtype)
			thermometer := diagnostics.NewThermometer(session.Program(), thermometerDataSize)
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
			// The other session does the same steps one by one.
			expect := func(steps int) []float64 {
				sums := make([]float64, len(layerSizes))
				for range steps {
					for i, v := range virials(t, ahead) {
						sums[i] += v
					}
					trial.Advance(t, ahead, 1)
				}
				return sums
			}
			first := expect(3)
			trial.Advance(t, session, 3)
			thermometer.Observe(session, 0, 3)
			check(first, 3)
			second := expect(128)
			trial.Advance(t, session, 128)
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
			trial.Advance(t, session, 1)
			thermometer.Observe(session, 131, 132)
			check(third, 1)
		})
	}
}

// TestKineticMetric compares the recorded kinetic temperatures with their definition: Mass v.v/(h
// d) of the velocities that a step begins with, h being the step size they were made with, by layer
// and overall; of samplers that are kicked, the mean of that and of it after the step's kick.
func TestKineticMetric(t *testing.T) {
	h := []float64{0.1, 0.3, 0, 0.2}
	for _, c := range []struct {
		mass    float64
		kicked  bool
		sampler langevin.Sampler
	}{
		{0.9, false, langevin.SGHMC{Friction: 0.2}},
		{1, false, langevin.OBABO{Friction: 0.2}},
		{1, true, langevin.BAOAB{Friction: 0.2}},
		{1, false, langevin.SGNHT{Friction: 0.2, Splitting: langevin.SplittingEuler, Coupling: 1e-3}},
		{1, true, langevin.SGNHT{Friction: 0.2, Splitting: langevin.SplittingBADODAB, Coupling: 1e-3}},
		{1, true, langevin.CCAdL{Friction: 0.2, Alpha: 0.9, Coupling: 1e-3}},
		{1, false, langevin.SMILE{Friction: 0.2}},
	} {
		sampler := c.sampler
		b := graph.New(tensor.Float32)
		var total *graph.Node
		for _, p := range layerSizes {
			w := b.Parameter(p.name, nil, p.n)
			loss := trial.Target{Field: trial.DiagonalGaussian{Smallest: p.k, Largest: p.k}, DataSize: thermometerDataSize}.Loss(b, w)
			if total != nil {
				loss = b.Apply(op.Add{}, total, loss)
			}
			total = loss
		}
		posterior := langevin.Posterior{DataSize: thermometerDataSize}
		if err := langevin.Attach(b, sampler, posterior, total, h, []float64{1, 1, 2, 1}); err != nil {
			t.Fatal(err)
		}
		session := trial.Load(t, b, graph.LoadOptions{Seed: 1, Chains: 2}, 2)
		thermometer := diagnostics.NewThermometer(session.Program(), thermometerDataSize)
		for step := range 8 {
			var squares [2]float64
			for i, p := range layerSizes {
				for chain := range 2 {
					w := trial.Values(t, session, p.name, chain, p.n)
					for j, v := range trial.Values(t, session, p.name+".momentum", chain, p.n) {
						if c.kicked {
							after := v - h[min(step, len(h)-1)]*p.k*w[j]
							v = math.Sqrt((v*v + after*after) / 2)
						}
						if last := h[min(max(0, step-1), len(h)-1)]; last > 0 && step > 0 {
							squares[i/2] += c.mass * v * v / last / 2
						}
					}
				}
			}
			trial.Advance(t, session, 1)
			thermometer.Reset()
			thermometer.Observe(session, step, step+1)
			for i, c := range []struct{ got, want float64 }{
				{thermometer.KineticLayer(0), squares[0] / (4097 + 3)},
				{thermometer.KineticLayer(1), squares[1] / 65},
				{thermometer.KineticTemperature(), (squares[0] + squares[1]) / (4097 + 3 + 65)},
			} {
				if !(math.Abs(c.got-c.want) <= 1e-5*c.want) {
					t.Errorf("%s, step %d: kinetic temperature %d is %v, want %v", sampler.Name(), step, i, c.got, c.want)
				}
			}
		}
	}
	if still := diagnostics.NewThermometer(thermometerSession(t, tensor.Float32).Program(), thermometerDataSize); !math.IsNaN(still.KineticTemperature()) {
		t.Errorf("SGLD has the kinetic temperature %v, want NaN", still.KineticTemperature())
	}
}
