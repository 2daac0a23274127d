package langevin_test

import (
	"fmt"
	"math"
	"testing"

	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/langevin"
	"github.com/pollen-ml/pollen/langevin/trial"
	"github.com/pollen-ml/pollen/optimizers"
	"github.com/pollen-ml/pollen/tensor"
)

// TestColdIsTheOptimizer: at temperature 0 a sampler is a plain optimizer bit for bit, a Gaussian
// prior N(0, s^2) being weight decay 1/(N s^2).
func TestColdIsTheOptimizer(t *testing.T) {
	const dimensions, dataSize, steps = 4099, 50, 6
	h := []float64{0.01, 0.02, 0.03, 0.005}
	for _, row := range rows() {
		for _, prior := range []langevin.Prior{langevin.Flat(), langevin.Gaussian(0.3)} {
			for _, dtype := range []tensor.DType{tensor.Float32, tensor.Float64} {
				if row.plain == nil {
					continue
				}
				t.Run(fmt.Sprintf("%s/%v/%v", row.name, prior, dtype), func(t *testing.T) {
					e := experiment{
						sampler: row.sampler, dtype: dtype, field: trial.DiagonalGaussian{Smallest: 0.5, Largest: 3}, noise: 2,
						dimensions: dimensions, prior: prior, dataSize: dataSize,
						start: trial.Normal(func(i int) float64 { return float64(i % 5) }), // zeros among them
					}
					sampler := e.loadSchedule(t, h, make([]float64, len(h)))
					plain := e.loadOptimizer(t, row.plain, h)
					if len(row.states) > 0 {
						const meanOfAll = 2 // steps, until t/(t+1) is above Alpha
						trial.Advance(t, sampler, meanOfAll)
						trial.Advance(t, plain, meanOfAll)
						copyState(t, plain, sampler, append([]string{""}, row.states...), dimensions)
					}
					for step := range steps {
						trial.Advance(t, sampler, 1)
						trial.Advance(t, plain, 1)
						got, want := trial.Values(t, sampler, trial.ParameterName, 0, dimensions), trial.Values(t, plain, trial.ParameterName, 0, dimensions)
						for i := range got {
							if math.Float64bits(got[i]) != math.Float64bits(want[i]) {
								t.Fatalf("step %d, element %d: got %v, the optimizer %v", step, i, got[i], want[i])
							}
						}
					}
				})
			}
		}
	}
}

// loadOptimizer is loadSchedule with an optimizer: its learning rate is h N, its weight decay the
// prior's.
func (e experiment) loadOptimizer(t *testing.T, rule func(weightDecay float64) optimizers.Optimizer, h []float64) *graph.Session {
	t.Helper()
	n := float64(e.dataSize)
	decay := 0.0
	if e.prior.Kind == langevin.GaussianPrior {
		decay = 1 / (n * e.prior.Scale * e.prior.Scale)
	}
	session, _ := e.build(t, func(b *graph.Builder, loss *graph.Node) error {
		parameters := b.Parameters()
		gradients := b.Gradients(loss, parameters...)
		rates := make([]float64, len(h))
		for i := range h {
			rates[i] = h[i] * n
		}
		optimizers.Update(b, rule(decay), parameters, gradients, b.Table("rates", rates))
		return b.Err()
	})
	return session
}

// copyState copies the parameter's states of these suffixes from one session to another.
func copyState(t *testing.T, to, from *graph.Session, suffixes []string, n int) {
	t.Helper()
	for _, suffix := range suffixes {
		v := trial.Values(t, from, trial.ParameterName+suffix, 0, n)
		var err error
		if to.Program().DType() == tensor.Float64 {
			err = graph.Write(to, trial.ParameterName+suffix, 0, 0, v)
		} else {
			err = graph.Write(to, trial.ParameterName+suffix, 0, 0, narrow(v))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

func narrow(values []float64) []float32 {
	n := make([]float32, len(values))
	for i, v := range values {
		n[i] = float32(v)
	}
	return n
}

// noiseOf is a first step from 0 without any gradient: only the noise.
func noiseOf(t *testing.T, row row, dtype tensor.DType, dataSize, dimensions int, h, temperature float64) []float64 {
	t.Helper()
	session := experiment{
		sampler: row.sampler, dtype: dtype, field: trial.DiagonalGaussian{Smallest: 1, Largest: 1}, dimensions: dimensions,
		dataSize: dataSize, step: h, temperature: temperature,
	}.load(t)
	trial.Advance(t, session, 1)
	return trial.Values(t, session, trial.ParameterName, 0, dimensions)
}

// TestNoiseScales: without a gradient a step is noise of variance 2 h T G, whatever N is. Powers of
// 4 scale it exactly.
func TestNoiseScales(t *testing.T) {
	const n = 4099
	for _, row := range rows() {
		for _, dtype := range []tensor.DType{tensor.Float32, tensor.Float64} {
			if row.still == 0 {
				continue
			}
			one := noiseOf(t, row, dtype, 64, n, 0.3, 0.7)
			for _, c := range []struct {
				name           string
				h, temperature float64
				dataSize       int
				factor         float64
			}{
				{"step size x 4", 1.2, 0.7, 64, 2},
				{"step size / 256", 0.3 / 256, 0.7, 64, 1. / 16},
				{"temperature x 16", 0.3, 11.2, 64, 4},
				{"N / 64", 0.3, 0.7, 1, 1},
				{"cold", 0.3, 0, 64, 0},
			} {
				for i, got := range noiseOf(t, row, dtype, c.dataSize, n, c.h, c.temperature) {
					if got != c.factor*one[i] {
						t.Fatalf("%s, %v, %s: element %d is %v, want %v exactly", row.name, dtype, c.name, i, got, c.factor*one[i])
					}
				}
			}
			squares := 0.0
			for _, v := range one {
				squares += v * v
			}
			want := 2 * 0.3 * 0.7 * row.still
			if z := (squares/n/want - 1) / math.Sqrt(2./n); math.Abs(z) > trial.ZLimit {
				t.Errorf("%s, %v: the noise's variance is %v, want 2 h T G = %v: z = %.1f", row.name, dtype, squares/n, want, z)
			}
		}
	}
}

// TestNoiseIsIndependent: between steps, chains, parameters and elements.
func TestNoiseIsIndependent(t *testing.T) {
	const n, steps, chains = 4096, 2, 2
	for _, row := range rows() {
		b := graph.New(tensor.Float32)
		first := b.Parameter("a.weight", nil, n)
		second := b.Parameter("b.weight", nil, n)
		zero := b.Data("zero", tensor.Float32, n)
		// The loss depends on both parameters, with no slope.
		loss := b.Apply(given{}, first, zero, second, zero)
		posterior := langevin.Posterior{DataSize: 1}
		if err := langevin.Attach(b, row.sampler, posterior, loss, []float64{0.5}, []float64{1}); err != nil {
			t.Fatal(err)
		}
		session := trial.Load(t, b, graph.LoadOptions{Seed: trial.RunSeed, Chains: chains}, 0)
		var increments [][]float64
		var names []string
		for chain := range chains {
			for _, name := range []string{"a.weight", "b.weight"} {
				names = append(names, fmt.Sprintf("%s of chain %d", name, chain))
				increments = append(increments, make([]float64, n))
			}
		}
		for step := range steps {
			if step > 0 && row.inertia {
				break
			}
			trial.Advance(t, session, 1)
			for i := range 2 * chains {
				v := trial.Values(t, session, []string{"a.weight", "b.weight"}[i%2], i/2, n)
				if step > 0 {
					for j := range v {
						v[j] -= increments[i][j]
					}
					names = append(names, names[i]+" a step later")
					increments = append(increments, v)
					continue
				}
				copy(increments[i], v)
			}
		}
		for i := range increments {
			for j := range i {
				checkUncorrelated(t, row.name+": "+names[i]+", "+names[j], increments[i], increments[j])
			}
			checkUncorrelated(t, row.name+": neighbours in "+names[i], increments[i][1:], increments[i][:n-1])
		}
	}
}

func checkUncorrelated(t *testing.T, name string, x, y []float64) {
	t.Helper()
	xy, xx, yy := 0.0, 0.0, 0.0
	for i := range x {
		xy, xx, yy = xy+x[i]*y[i], xx+x[i]*x[i], yy+y[i]*y[i]
	}
	if xx*yy == 0 {
		t.Fatalf("%s: a step made no noise: the suite's row needs attributes with which the first steps do", name)
	}
	if z := xy / math.Sqrt(xx*yy/float64(len(x))); !(math.Abs(z) < trial.ZLimit) {
		t.Errorf("%s: the noise is correlated: z = %.1f", name, z)
	}
}
