package langevin_test

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/stat"

	"github.com/pollen-ml/pollen/diagnostics"
	"github.com/pollen-ml/pollen/internal/testenv"
	"github.com/pollen-ml/pollen/langevin"
	"github.com/pollen-ml/pollen/langevin/trial"
	"github.com/pollen-ml/pollen/tensor"
)

// turning is SMILE in float64.
type turning struct {
	friction float64
	v        []float64
	less     float64 // the length is sqrt((d - less) h T); 1 is right
	free     bool    // velocities keep the length that the kick gives them
	even     bool    // q is 1
}

// step returns theta after a step.
func (s *turning) step(before []element) []float64 {
	h, temperature, c := before[0].h, before[0].temperature, math.Exp(-s.friction)
	if before[0].step == 0 {
		s.v = make([]float64, len(before))
		for i, e := range before {
			s.v[i] = math.Sqrt(h*temperature) * e.start
		}
	}
	for i, e := range before {
		s.v[i] -= h * e.n * e.g
	}
	r := math.Sqrt((float64(len(before))-s.less)*h*temperature) / floats.Norm(s.v, 2)
	if s.free || len(before) == 1 {
		r = 1
	}
	q := 2 * r / (1 + r)
	if s.even {
		q = 1
	}
	theta := make([]float64, len(before))
	for i, e := range before {
		old := r * s.v[i]
		s.v[i] = c*old + math.Sqrt((1-c*c)*h*temperature)*e.xi
		theta[i] = e.theta + q/2*(old+s.v[i])
	}
	return theta
}

// TestSMILEFormula compares SMILE to the documented formula, step by step, in which each term must
// matter.
func TestSMILEFormula(t *testing.T) {
	for _, dtype := range []tensor.DType{tensor.Float32, tensor.Float64} {
		for _, n := range []int{1, 2, 257, 4099} {
			t.Run(fmt.Sprintf("%v/%d", dtype, n), func(t *testing.T) {
				const friction = 0.2
				tr := record(t, experiment{
					sampler: langevin.SMILE{Friction: friction}, dtype: dtype, field: trial.DiagonalGaussian{Smallest: 0.5, Largest: 3}, dimensions: n,
					prior: langevin.Laplace(0.5), dataSize: 50, start: trial.Normal(func(int) float64 { return 1 }),
				})
				checkVirials(t, tr)
				if excess := tr.excessOfSteps((&turning{friction: friction, less: 1}).step); !(excess <= 1) {
					t.Errorf("off the formula by %.3g times the rounding", excess)
				}
				if n == 1 {
					return // as BAOAB, the length is free
				}
				for name, wrong := range map[string]*turning{
					"d for d - 1": {friction: friction}, "another friction": {friction: 1.01 * friction, less: 1},
					"a free length": {friction: friction, less: 1, free: true}, "q = 1": {friction: friction, less: 1, even: true},
				} {
					checkWrongSteps(t, tr, name, wrong.step)
				}
			})
		}
	}
}

// smileChain returns SMILE's chain for elements of curvature k, where N multiplies velocities by
// the constant r.
func smileChain(friction, r, q, k, h, temperature, noise float64) linear {
	c := math.Exp(-friction)
	return still(curvature(k)).kick(1, h, noise, 0).relax(r, 0).drift(q/2).relax(c, (1-c*c)*h*temperature).drift(q / 2)
}

// smileTemperatures returns the configurational temperatures of very many elements whose velocities
// share one length, in equal numbers for each curvature and noise: one for each pair, and r. q
// gives q for a value of r.
func smileTemperatures(friction float64, curvatures, noises []float64, h, temperature float64, q func(r float64) float64) (temperatures []float64, r float64) {
	c, lo, hi := math.Exp(-friction), 0.0, math.Exp(0.99*friction)
	for range 60 {
		r = (lo + hi) / 2
		temperatures = nil
		squares := 0.0 // after N, relative to what they are
		for _, k := range curvatures {
			for _, noise := range noises {
				p := smileChain(friction, r, q(r), k, h, temperature, noise).covariance()
				temperatures = append(temperatures, k*p.At(0, 0))
				// O turns the velocity v after N into c v plus noise.
				squares += (p.At(1, 1)/(h*temperature) - (1 - c*c)) / (c * c) / float64(len(curvatures)*len(noises))
			}
		}
		if squares > 1 {
			hi = r
		} else {
			lo = r
		}
	}
	return temperatures, r
}

// documented returns q as in SMILE's comment.
func documented(r float64) float64 { return 2 * r / (1 + r) }

// TestSMILETheory: the formulas of SMILE's comment, where curvatures are small.
func TestSMILETheory(t *testing.T) {
	const k, h, temperature = 1e-6, 0.01, 0.7
	for _, friction := range []float64{0.02, 0.3} {
		for _, heating := range []float64{0, 0.1, 1} { // of v v/h by a minibatch, over T
			noises := []float64{0, math.Sqrt(2 * heating * temperature / h)}
			got, r := smileTemperatures(friction, []float64{k}, noises, h, temperature, documented)
			if want := 1 / math.Sqrt(1+heating); !(math.Abs(r/want-1) < 0.05*heating+1e-4) {
				t.Errorf("r is %.6g, want about %.6g", r, want)
			}
			c := math.Exp(-friction)
			s := (1 - r) * (1 + c) / (2 * (1 - r*c))
			for i, n := range []float64{0, 2} {
				if want := temperature * (1 + s*(n-1)); !(math.Abs(got[i]-want) < 1e-3*temperature) {
					t.Errorf("friction %v, heating %v: the temperature is %.6g, want %.6g", friction, heating, got[i], want)
				}
			}
			if mean := (got[0] + got[1]) / 2; !(math.Abs(mean-temperature) < 1e-3*temperature) {
				t.Errorf("friction %v, heating %v: the mean temperature is %.6g", friction, heating, mean)
			}
			plain, r := smileTemperatures(friction, []float64{k}, []float64{noises[1]}, h, temperature, func(float64) float64 { return 1 })
			if want := temperature * (1 + r) / (2 * r); !(math.Abs(plain[0]-want) < 1e-3*temperature) {
				t.Errorf("friction %v, heating %v: with q = 1 the temperature is %.6g, want %.6g", friction, 2*heating, plain[0], want)
			}
		}
	}
}

// TestSMILETemperatures compares the temperatures of a long run with the chain's, by curvature, on
// steps so large, and with noise so strong, that errors show: a minibatch brings as much of v v as
// the temperature does.
func TestSMILETemperatures(t *testing.T) {
	const n, h, temperature, friction, burnIn = 4000, 0.1, 0.8, 0.2, 500
	steps := trial.StepsOf(t, 2000)
	f := trial.DiagonalGaussian{Smallest: 0.2, Largest: 2}
	var curvatures []float64
	for i := range trial.Classes {
		curvatures = append(curvatures, f.Curvature(i))
	}
	for _, noise := range []float64{0, math.Sqrt(temperature / h)} {
		t.Run(fmt.Sprintf("noise %.3g", noise), func(t *testing.T) {
			session := experiment{
				sampler: langevin.SMILE{Friction: friction}, field: f, noise: noise, dimensions: n, dataSize: 10, step: h, temperature: temperature,
				start: trial.Normal(func(i int) float64 { return math.Sqrt(temperature / f.Curvature(i)) }),
			}.load(t)
			trial.Advance(t, session, burnIn)
			thermometer := diagnostics.NewThermometer(session.Program(), 10)
			got := make([]float64, trial.Classes)
			for range steps {
				at := int(session.Steps())
				trial.Advance(t, session, 1)
				thermometer.Observe(session, at, at+1)
				for i, x := range trial.Values(t, session, trial.ParameterName, 0, n) {
					got[i%trial.Classes] += f.Curvature(i) * x * x * trial.Classes / float64(n*steps)
				}
			}
			want, r := smileTemperatures(friction, curvatures, []float64{noise}, h, temperature, documented)
			t.Logf("r is %.4g, temperatures %.4g, in theory %.4g", r, got, want)
			if off := farthest(got, want); !(off < 0.015*math.Sqrt(2000/float64(steps))) {
				t.Errorf("temperatures are %.4g, want %.4g", got, want)
			}
			if kinetic := thermometer.KineticTemperature(); !(math.Abs(kinetic/temperature-1) < 0.003) {
				t.Errorf("the kinetic temperature is %.5g, want %v", kinetic, temperature)
			}
			if noise == 0 {
				return
			}
			for name, q := range map[string]func(r float64) float64{
				"q = 1": func(float64) float64 { return 1 }, "q = r": func(r float64) float64 { return r },
			} {
				if wrong, _ := smileTemperatures(friction, curvatures, []float64{noise}, h, temperature, q); farthest(got, wrong) < 0.05 {
					t.Errorf("%s is not noticed: temperatures would be %.4g", name, wrong)
				}
			}
		})
	}
}

// TestSMILEAtRealSteps uses step sizes as for all of MNIST, with minibatch noise that is unknown to
// the sampler: it doubles BAOAB's temperature in all elements, or adds 200 % in every second one
// only. SMILE's comment gives the bias that remains. BAOAB fails the same check.
func TestSMILEAtRealSteps(t *testing.T) {
	const n, k, h, temperature, friction, dataSize = 2000, 2e5, 3e-7, 1.0, 0.1, 60000
	burnIn, steps := 1000, trial.StepsOf(t, 2000)
	heated := math.Sqrt(2 * friction * temperature / h)
	for _, c := range []struct {
		name   string
		noises []float64
	}{{"even", []float64{heated, heated}}, {"uneven", []float64{0, math.Sqrt2 * heated}}} {
		t.Run(c.name, func(t *testing.T) {
			e := experiment{
				sampler: langevin.SMILE{Friction: friction}, field: trial.DiagonalGaussian{Smallest: k, Largest: k}, noise: c.noises[1], uneven: c.noises[0] == 0,
				dimensions: n,
				dataSize:   dataSize, step: h, temperature: temperature, start: trial.Normal(func(int) float64 { return math.Sqrt(temperature / k) }),
			}
			by, r := smileTemperatures(friction, []float64{k}, c.noises, h, temperature, documented)
			want := append([]float64{(by[0] + by[1]) / 2}, by...)
			got := e.temperaturesByNoise(t, burnIn, steps, 2)
			t.Logf("r is %.4g, temperatures %.4g, in theory %.4g: in all, then of elements by their noise", r, got, want)
			if off := farthest(got, want); !(off < 0.02) {
				t.Errorf("temperatures are %.4g, want %.4g: in all, then of elements by their noise", got, want)
			}
			if off := math.Abs(want[0]/temperature - 1); !(off < 0.02) {
				t.Errorf("in theory the temperature is off by %.3g in all", off)
			}
			e.sampler = langevin.BAOAB{Friction: friction}
			if got := e.temperaturesByNoise(t, burnIn, steps, 2); !(got[0] > 1.5) {
				t.Errorf("BAOAB is not heated: temperatures are %.4g", got)
			}
		})
	}
}

// TestSMILEInFewDimensions: with small steps theta has the density exp(-U/T) in any number of
// dimensions; with d instead of d - 1 it would have the temperature T d/(d-1).
func TestSMILEInFewDimensions(t *testing.T) {
	testenv.NeedsAll(t, "long chains")
	const chains, k, h, temperature = 60, 1.7, 0.005, 0.8
	steps := trial.StepsOf(t, 4000)
	for _, dimensions := range []int{2, 3, 6} {
		session := experiment{
			sampler: langevin.SMILE{Friction: 0.01}, dtype: tensor.Float64, field: trial.DiagonalGaussian{Smallest: k, Largest: k}, noise: 1,
			dimensions: dimensions, chains: trial.ChainsOf(t, chains),
			dataSize: 1, step: h, temperature: temperature, start: trial.Normal(func(int) float64 { return math.Sqrt(temperature / k) }),
		}.load(t)
		means := make([]float64, trial.ChainsOf(t, chains))
		for range steps / 20 {
			trial.Advance(t, session, 20)
			for chain := range means {
				for _, x := range trial.Values(t, session, trial.ParameterName, chain, dimensions) {
					means[chain] += x * x * k / temperature / float64(dimensions*(steps/20))
				}
			}
		}
		mean, sigma := stat.MeanStdDev(means, nil)
		of := func(want float64) float64 { return (mean - want) / (sigma / math.Sqrt(float64(len(means)))) }
		t.Logf("%d dimensions: the variance is %.4g of the target's, z = %.1f", dimensions, mean, of(1))
		if !(math.Abs(of(1)) < trial.ZLimit) && !(math.Abs(mean-1) < 0.01) {
			t.Errorf("%d dimensions: the variance is %.4g of the target's, z = %.1f", dimensions, mean, of(1))
		}
		wrong := float64(dimensions) / float64(dimensions-1)
		if z := of(wrong); z > -trial.ZLimit-1 && !trial.Underpowered(math.Abs(of(wrong)-of(1))) {
			t.Errorf("%d dimensions: d for d - 1 is not noticed: z = %.1f", dimensions, z)
		}
	}
}

func TestSMILEValidate(t *testing.T) {
	for _, friction := range []float64{0, -1, math.Inf(1), math.NaN()} {
		if err := (langevin.SMILE{Friction: friction}).Validate(); err == nil || !strings.HasPrefix(err.Error(), "langevin: smile: Friction must be positive, got ") {
			t.Errorf("Friction %v: error is %v", friction, err)
		}
	}
}
