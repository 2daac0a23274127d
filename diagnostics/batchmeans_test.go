package diagnostics_test

import (
	"math"
	"testing"

	"github.com/pollen-ml/pollen/diagnostics"
	"github.com/pollen-ml/pollen/langevin/trial"
	"github.com/pollen-ml/pollen/tensor"
	"github.com/pollen-ml/pollen/tensor/random"
)

// autoregressive is x_t = memory x_{t-1} + z_t from its stationary distribution.
func autoregressive(memory float64, length int, chain uint32) []float64 {
	x := make([]float64, length)
	random.Normals(x, 0, random.Address{Seed: 7, Chain: chain})
	x[0] /= math.Sqrt(1 - memory*memory)
	for i := 1; i < length; i++ {
		x[i] += memory * x[i-1]
	}
	return x
}

// The squared standard error is on average the variance of the mean, which for long chains with
// memory a is (1/(1-a))^2/n.
func TestStandardErrorOfChainsWithMemory(t *testing.T) {
	const repetitions = 400
	for _, c := range []struct {
		memory         float64
		chains, length int
		high           float64 // the larger one of two estimates is too large by this factor
	}{{0, 1, 257, 1}, {0, 1, 31, 1}, {0.9, 1, 4001, 1}, {0.9, 4, 1033, 1.4}, {-0.5, 1, 640, 1}} {
		mean := 0.0
		for i := range repetitions {
			var chains [][]float64
			for chain := range c.chains {
				chains = append(chains, autoregressive(c.memory, c.length, uint32(i*c.chains+chain)))
			}
			e := diagnostics.StandardError(chains)
			mean += e * e / repetitions
		}
		want := 1 / ((1 - c.memory) * (1 - c.memory) * float64(c.chains*c.length))
		if !(mean > 0.8*want && mean < 1.2*c.high*want) {
			t.Errorf("%+v: mean squared standard error %v, want %v", c, mean, want)
		}
	}
}

func TestStandardErrorOfFewSteps(t *testing.T) {
	for _, c := range []struct {
		chains [][]float64
		want   float64
	}{
		{[][]float64{{1}}, math.NaN()},
		{[][]float64{{1, 3}}, 1},
		{[][]float64{{1}, {3}}, 1},
		{[][]float64{{1, 1.1, 0.9}, {3, 3.1, 2.9}}, 1}, // chains that stay in two places
		{[][]float64{{1, 3}, {1, 3}}, math.Sqrt(0.5)},  // and such as agree
	} {
		got := diagnostics.StandardError(c.chains)
		if math.IsNaN(got) != math.IsNaN(c.want) || math.Abs(got-c.want) > 1e-12 {
			t.Errorf("%v: standard error %v, want %v", c.chains, got, c.want)
		}
	}
}

// The thermometer's errors equal the errors of the traces of theta . grad U / d, by layer and
// overall, whichever chain is in a place.
func TestThermometerErrors(t *testing.T) {
	const steps = 100
	session := thermometerSession(t, tensor.Float64)
	thermometer := diagnostics.NewThermometer(session.Program(), thermometerDataSize)
	if !math.IsNaN(thermometer.LayerError(0)) || !math.IsNaN(thermometer.TemperatureError()) {
		t.Error("a thermometer that saw nothing knows its error")
	}
	trial.Advance(t, session, steps)
	places := []int{2, 0}
	thermometer.ObserveChains(session, 0, steps, places)
	traces := [3][][]float64{} // by layer, then of all
	sizes := [3]float64{4097 + 3, 65, 4097 + 3 + 65}
	for place, chain := range places {
		for i := range traces {
			traces[i] = append(traces[i], make([]float64, steps))
		}
		for _, name := range session.Program().Metrics() {
			layer, ok := map[string]int{"theta.g a.weight": 0, "theta.g a.bias": 0, "theta.g b.weight": 1}[name]
			for step := 0; ok && step < steps; step++ {
				value := thermometerDataSize * session.Metric(chain, name, uint64(step))
				traces[layer][place][step] += value / sizes[layer]
				traces[2][place][step] += value / sizes[2]
			}
		}
	}
	for i, got := range []float64{thermometer.LayerError(0), thermometer.LayerError(1), thermometer.TemperatureError()} {
		if want := diagnostics.StandardError(traces[i]); !(math.Abs(got/want-1) < 1e-9) {
			t.Errorf("error %d is %v, want %v", i, got, want)
		}
	}
	thermometer.Reset()
	if !math.IsNaN(thermometer.TemperatureError()) {
		t.Error("an error after a reset")
	}
}
