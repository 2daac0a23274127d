package langevin_test

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/pollen-ml/pollen/diagnostics"
	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/graph/op"
	"github.com/pollen-ml/pollen/internal/testenv"
	"github.com/pollen-ml/pollen/langevin"
	"github.com/pollen-ml/pollen/langevin/trial"
	"github.com/pollen-ml/pollen/tensor"
)

// controlled is CCAdL in float64.
type controlled struct {
	sampler         langevin.CCAdL
	v, variance, at []float64 // at is the gradient of the step before
	chi             float64
	least           float64                          // of chi
	sigma           func(difference float64) float64 // its square halved, if nil
}

func (s *controlled) adapt(h, temperature float64) {
	thermostat := thermostatted{sampler: langevin.SGNHT{Coupling: s.sampler.Coupling}, v: s.v, chi: s.chi}
	thermostat.adapt(0.5, h, temperature)
	s.chi = thermostat.chi
}

// step returns theta after a step.
func (s *controlled) step(before []element) []float64 {
	h, temperature, n, t := before[0].h, before[0].temperature, before[0].n, float64(before[0].step)
	if t == 0 {
		s.chi, s.v, s.variance, s.at = s.sampler.Friction, make([]float64, len(before)), make([]float64, len(before)), make([]float64, len(before))
	}
	s.chi = max(s.chi, s.least)
	theta := make([]float64, len(before))
	for i, e := range before {
		if t == 0 {
			s.v[i] = math.Sqrt(h*temperature) * e.start
		} else {
			keep, square := min(s.sampler.Alpha, 1-1/t), (e.g-s.at[i])*(e.g-s.at[i])/2
			if s.sigma != nil {
				square = s.sigma(e.g - s.at[i])
			}
			s.variance[i] = keep*s.variance[i] + (1-keep)*square
		}
		s.at[i] = e.g
		s.v[i] -= h * e.n * e.g
	}
	s.adapt(h, temperature)
	for i, e := range before {
		f := s.chi + h*n*n*s.variance[i]/(2*temperature)
		theta[i] = e.theta + s.v[i]/2
		c := math.Exp(-f)
		s.v[i] = c*s.v[i] + math.Sqrt((1-c*c)*s.sampler.Friction/f*h*temperature)*e.xi
		theta[i] += s.v[i] / 2
	}
	s.adapt(h, temperature)
	return theta
}

// TestCCAdLFormula compares CCAdL to the documented formula, step by step, in which each term must
// matter.
func TestCCAdLFormula(t *testing.T) {
	for _, dtype := range []tensor.DType{tensor.Float32, tensor.Float64} {
		for _, n := range []int{1, 257, 4099} {
			t.Run(fmt.Sprintf("%v/%d", dtype, n), func(t *testing.T) {
				sampler := langevin.CCAdL{Friction: 0.2, Alpha: 0.6, Coupling: 0.05}
				tr := record(t, experiment{
					sampler: sampler, dtype: dtype, field: trial.DiagonalGaussian{Smallest: 0.5, Largest: 3}, dimensions: n, prior: langevin.Laplace(0.5), dataSize: 50,
					start: trial.Normal(func(int) float64 { return 1 }),
				})
				checkVirials(t, tr)
				if excess := tr.excessOfSteps((&controlled{sampler: sampler}).step); !(excess <= 1) {
					t.Errorf("off the formula by %.3g times the rounding", excess)
				}
				other := func(change func(s *langevin.CCAdL)) *controlled {
					s := sampler
					change(&s)
					return &controlled{sampler: s}
				}
				for name, wrong := range map[string]*controlled{
					"no covariance":    {sampler: sampler, sigma: func(float64) float64 { return 0 }},
					"the whole square": {sampler: sampler, sigma: func(d float64) float64 { return d * d }},
					"a deviation":      {sampler: sampler, sigma: math.Abs},
					"no memory":        other(func(s *langevin.CCAdL) { s.Alpha = 0 }),
					"all memory":       other(func(s *langevin.CCAdL) { s.Alpha = 1 }),
					"another friction": other(func(s *langevin.CCAdL) { s.Friction *= 1.1 }),
					"half the coupling": other(func(s *langevin.CCAdL) {
						s.Coupling /= 2
					}),
				} {
					checkWrongSteps(t, tr, name, wrong.step)
				}
				for name, change := range map[string]func(s *controlled, before []element){
					"squares for deviations":         func(s *controlled, _ []element) { clear(s.at) },
					"a friction that does not adapt": func(s *controlled, _ []element) { s.chi = sampler.Friction },
				} {
					s := &controlled{sampler: sampler}
					checkWrongSteps(t, tr, name, func(before []element) []float64 {
						change(s, before)
						return s.step(before)
					})
				}
			})
		}
	}
}

// TestCCAdLChiStaysAbove0: where the velocities' temperature stays below a rising one, chi ends at
// 0 and not below it.
func TestCCAdLChiStaysAbove0(t *testing.T) {
	for _, dtype := range []tensor.DType{tensor.Float32, tensor.Float64} {
		sampler := langevin.CCAdL{Friction: 0.2, Alpha: 0.6, Coupling: 0.7}
		tr := record(t, experiment{
			sampler: sampler, dtype: dtype, field: trial.DiagonalGaussian{Smallest: 0.5, Largest: 3}, dimensions: 4099, dataSize: 50,
			start: trial.Normal(func(int) float64 { return 0.1 }),
		})
		if excess := tr.excessOfSteps((&controlled{sampler: sampler}).step); !(excess <= 1) {
			t.Errorf("off the formula by %.3g times the rounding", excess)
		}
		checkWrongSteps(t, tr, "a chi below 0", (&controlled{sampler: sampler, least: -100}).step)
	}
}

// checkWrongSteps fails the test unless a trace in float64 refutes a rule.
func checkWrongSteps(t *testing.T, tr trace, name string, step func(before []element) []float64) {
	t.Helper()
	if excess := tr.excessOfSteps(step); excess < 100 && tr.epsilon < 1e-10 {
		t.Errorf("%s: not noticed: off by %.3g times the rounding", name, excess)
	}
}

// ccadlChain is the chain of one element of that curvature whose friction chi + b is constant.
func ccadlChain(s langevin.CCAdL, friction, k, h, temperature, noise float64) linear {
	keep := math.Exp(-friction)
	return still(curvature(k)).kick(1, h, noise, 0).drift(0.5).relax(keep, (1-keep*keep)*s.Friction/friction*h*temperature).drift(0.5)
}

// ccadlVelocities returns the variance of the velocities that chi adapts to in ccadlChain: the mean
// of the variances before and after B.
func ccadlVelocities(s langevin.CCAdL, friction, k, h, temperature, noise float64) float64 {
	keep := math.Exp(-friction)
	after := still(curvature(k)).drift(0.5).relax(keep, (1-keep*keep)*s.Friction/friction*h*temperature).drift(0.5).kick(1, h, noise, 0)
	return (ccadlChain(s, friction, k, h, temperature, noise).covariance().At(1, 1) + after.covariance().At(1, 1)) / 2
}

// ccadlFriction is chi + b of an element, with an S of unlimited memory times trust: (g - g')^2/2
// of g = k theta + noise is noise^2 + k^2 (theta's variance - its covariance with theta a step
// later) + k h (1 + c)/2 noise^2, for the next theta has moved by - h (1 + c)/2 of the noise.
func ccadlFriction(s langevin.CCAdL, chi, trust, k, h, temperature, noise float64) float64 {
	friction := chi + trust*h*noise*noise/(2*temperature)
	for range 100 {
		c := ccadlChain(s, friction, k, h, temperature, noise)
		p := c.covariance()
		lag := c.m.At(0, 0)*p.At(0, 0) + c.m.At(0, 1)*p.At(1, 0)
		keep := math.Exp(-friction)
		variance := noise*noise*(1+k*h*(1+keep)/2) + k*k*(p.At(0, 0)-lag)
		friction = chi + trust*h*variance/(2*temperature)
	}
	return friction
}

// ccadlTemperatures returns the configurational temperatures of very many elements, in equal
// numbers for each noise, which share one chi: first of all elements, then of the elements of each
// noise.
func ccadlTemperatures(s langevin.CCAdL, trust, k, h, temperature float64, noises []float64) (temperatures []float64, chi float64) {
	lo, hi := 0.0, 2.0
	for range 50 {
		chi = (lo + hi) / 2
		squares := 0.0
		temperatures = make([]float64, 1, 1+len(noises))
		for _, noise := range noises {
			friction := ccadlFriction(s, chi, trust, k, h, temperature, noise)
			squares += ccadlVelocities(s, friction, k, h, temperature, noise) / float64(len(noises))
			temperatures = append(temperatures, k*ccadlChain(s, friction, k, h, temperature, noise).covariance().At(0, 0))
			temperatures[0] += temperatures[len(temperatures)-1] / float64(len(noises))
		}
		if squares > h*temperature {
			lo = chi
		} else {
			hi = chi
		}
	}
	return temperatures, chi
}

// TestCCAdLTheory: the formulas of CCAdL's comment.
func TestCCAdLTheory(t *testing.T) {
	const k, temperature, h, noise = 0.2, 0.7, 0.05, 2
	s := langevin.CCAdL{Friction: 0.1, Coupling: 1e-3}
	b := h * noise * noise / (2 * temperature)
	near := func(what string, got, want, tolerance float64) {
		t.Helper()
		if !(math.Abs(got-want) <= tolerance*math.Abs(want)) {
			t.Errorf("%s is %.6g, want %.6g", what, got, want)
		}
	}
	for _, friction := range []float64{0.05, 0.3, 1.7} {
		got := 1e-6 * ccadlChain(s, friction, 1e-6, h, temperature, noise).covariance().At(0, 0)
		near("the temperature of a soft element", got, temperature*(s.Friction+b*friction/2/math.Tanh(friction/2))/friction, 1e-5)
	}
	got := k * ccadlChain(s, 0.3, k, h, temperature, 0).covariance().At(0, 0)
	near("the temperature without noise", got, temperature*s.Friction/0.3, 1e-9)
	temperatures, _ := ccadlTemperatures(s, 1, 1e-4, h, temperature, []float64{noise})
	near("what is missing", 1-temperatures[0]/temperature, (s.Friction+b)*b/4, 0.15)
	friction := ccadlFriction(s, 0.1, 1, k, h, temperature, noise)
	near("b", friction-0.1, b*(1+k*h)+square(k*h)/4, 3e-3)
}

// TestCCAdLTemperatures compares the temperatures, the friction and S of a long run with the
// chain's, on steps so large that their errors show.
func TestCCAdLTemperatures(t *testing.T) {
	testenv.NeedsAll(t, "long chains")
	const n, k, h, temperature, burnIn = 4000, 1.5, 0.1, 0.8, 1500
	steps := trial.StepsOf(t, 2000)
	for _, noise := range []float64{0, 2} {
		t.Run(fmt.Sprint("noise ", noise), func(t *testing.T) {
			sampler := langevin.CCAdL{Friction: 0.2, Alpha: 0.995, Coupling: 0.02}
			session := experiment{
				sampler: sampler, field: trial.DiagonalGaussian{Smallest: k, Largest: k}, noise: noise, dimensions: n, dataSize: 10, step: h, temperature: temperature,
			}.load(t)
			trial.Advance(t, session, burnIn)
			thermometer := diagnostics.NewThermometer(session.Program(), 10)
			for range steps {
				at := int(session.Steps())
				trial.Advance(t, session, 1)
				thermometer.Observe(session, at, at+1)
			}
			want, chi := ccadlTemperatures(sampler, 1, k, h, temperature, []float64{noise})
			variance := 0.0
			for _, v := range trial.Values(t, session, trial.ParameterName+".noise variance", 0, n) {
				variance += v * 10 * 10 / n
			}
			wantVariance := (ccadlFriction(sampler, chi, 1, k, h, temperature, noise) - chi) * 2 * temperature / h
			for _, v := range []struct {
				name                 string
				got, want, tolerance float64
			}{
				{"configurational temperature", thermometer.Temperature(), want[0], 0.01},
				{"kinetic temperature", thermometer.KineticTemperature(), temperature, 0.005},
				{"the variance of the gradient", variance, wantVariance, 0.015},
			} {
				if !(math.Abs(v.got/v.want-1) < v.tolerance) {
					t.Errorf("%s is %.5g, want %.5g", v.name, v.got, v.want)
				}
			}
		})
	}
}

// TestCCAdLAtRealSteps uses step sizes as for all of MNIST, with minibatch noise that is unknown to
// the sampler and that only every second element has: it would heat these by 200 %. SGNHT leaves
// them at 1.49 and the others at 0.50 of the temperature; CCAdL has all within 4 % of it, and
// within 2 % of its theory. Theories with another b are refuted.
func TestCCAdLAtRealSteps(t *testing.T) {
	testenv.NeedsAll(t, "long chains")
	const n, k, h, temperature, friction, dataSize = 2000, 2e5, 3e-7, 1.0, 0.1, 60000
	burnIn, steps := 2000, trial.StepsOf(t, 2500)
	noises := []float64{0, math.Sqrt(4 * friction * temperature / h)}
	sampler := langevin.CCAdL{Friction: friction, Alpha: 0.999, Coupling: 1e-3}
	e := experiment{
		sampler: sampler, field: trial.DiagonalGaussian{Smallest: k, Largest: k}, noise: noises[1], uneven: true, dimensions: n,
		dataSize: dataSize, step: h, temperature: temperature, start: trial.Normal(func(int) float64 { return math.Sqrt(temperature / k) }),
	}
	want, _ := ccadlTemperatures(sampler, 1, k, h, temperature, noises)
	got := e.temperaturesByNoise(t, burnIn, steps, len(noises))
	t.Logf("temperatures %.4g, in theory %.4g: in all, then of elements by their noise", got, want)
	if off := farthest(got, want); !(off < 0.02) {
		t.Errorf("temperatures are %.4g, want %.4g: in all, then of elements by their noise", got, want)
	}
	if off := farthest(want, []float64{1, 1, 1}); !(off < 0.04) {
		t.Errorf("in theory temperatures are %.4g, off by %.3g", want, off)
	}
	for _, trust := range []float64{0, 0.5, 2} {
		if wrong, _ := ccadlTemperatures(sampler, trust, k, h, temperature, noises); farthest(got, wrong) < 0.1 {
			t.Errorf("%v of b is not noticed: temperatures would be %.4g", trust, wrong)
		}
	}
	plain := langevin.SGNHT{Friction: friction, Splitting: langevin.SplittingBADODAB, Coupling: sampler.Coupling}
	e.sampler = plain
	got = e.temperaturesByNoise(t, burnIn, steps, len(noises))
	t.Logf("SGNHT: temperatures %.4g", got)
	if off := farthest(got, []float64{1, 1, 1}); off < 0.45 {
		t.Errorf("SGNHT's temperatures are %.4g, off by %.3g only", got, off)
	}
}

// paired is a Bowl with noise that pairs of neighbours share.
type paired struct {
	trial.DiagonalGaussian
	noise float64
}

func (f paired) Potential(b *graph.Builder, w *graph.Node) *graph.Node {
	pairs := graph.ShapeOf(w).Elements() / 2
	sums := b.Apply(op.MatMul{}, b.Apply(op.ViewAs(pairs, 2), w), b.Table("ones", []float64{1, 1}, 2, 1))
	z := b.Apply(op.Noise{Stream: b.Stream(), As: op.ViewAs(pairs, 1)}, b.Header())
	slope := b.Apply(op.Sum{}, b.Apply(op.Multiply{}, sums, z))
	return b.Apply(op.Add{}, f.DiagonalGaussian.Potential(b, w), b.Apply(op.Scale{Factor: f.noise}, slope))
}

// TestCCAdLCommonNoise measures the error that remains where two elements share their noise, which
// a diagonal cannot represent. Their sum, with twice the noise, is at (a + 2b)/(chi + b) of the
// temperature, and their difference, without noise, at a/(chi + b).
func TestCCAdLCommonNoise(t *testing.T) {
	const n, k, h, temperature, friction, dataSize = 2000, 2e4, 3e-7, 1.0, 0.1, 60000
	burnIn, samples := 3000, trial.StepsOf(t, 600)
	noise := math.Sqrt(2 * friction * temperature / h)
	sampler := langevin.CCAdL{Friction: friction, Alpha: 0.999, Coupling: 1e-3}
	session := experiment{
		sampler: sampler, field: paired{trial.DiagonalGaussian{Smallest: k, Largest: k}, noise}, dimensions: n,
		dataSize: dataSize, step: h, temperature: temperature, start: trial.Normal(func(int) float64 { return math.Sqrt(temperature / k) }),
	}.load(t)
	trial.Advance(t, session, burnIn)
	var got [2]float64
	for range samples {
		trial.Advance(t, session, 10)
		theta := trial.Values(t, session, trial.ParameterName, 0, n)
		for i := 0; i < n; i += 2 {
			got[0] += k * square(theta[i]+theta[i+1]) / n / float64(samples)
			got[1] += k * square(theta[i]-theta[i+1]) / n / float64(samples)
		}
	}
	// One chi for both: their velocities' mean variance is h T.
	b, lo, hi := h*noise*noise/(2*temperature), 0.0, 1.0
	for range 50 {
		chi := (lo + hi) / 2
		if ccadlVelocities(sampler, chi+b, k, h, temperature, math.Sqrt2*noise)+ccadlVelocities(sampler, chi+b, k, h, temperature, 0) > 2*h*temperature {
			lo = chi
		} else {
			hi = chi
		}
	}
	want := []float64{
		k * ccadlChain(sampler, lo+b, k, h, temperature, math.Sqrt2*noise).covariance().At(0, 0),
		k * ccadlChain(sampler, lo+b, k, h, temperature, 0).covariance().At(0, 0),
	}
	t.Logf("temperatures of sums and differences %.4g, in theory %.4g", got, want)
	if off := farthest(got[:], want); !(off < 0.03) {
		t.Errorf("temperatures of sums and differences are %.4g, want %.4g", got, want)
	}
	if off := farthest(want, []float64{(friction + 2*b) / (lo + b), friction / (lo + b)}); !(off < 0.03) {
		t.Errorf("temperatures in theory are %.4g, off the comment's by %.3g", want, off)
	}
}

// TestElementRelaxation: a single exponential is as exact as two, at frictions from hardly any to
// more than a float64 distinguishes from infinity.
func TestElementRelaxation(t *testing.T) {
	for friction := 0.0; friction < 1000; friction = max(1e-18, 1.3*friction) {
		keep, strength := langevin.ElementRelaxation(friction, 0.3)
		wantKeep, wantStrength := langevin.Relaxation(friction, 0.3)
		if !(math.Abs(keep-wantKeep) <= 2e-16) || !(math.Abs(strength/wantStrength-1) <= 1e-15) {
			t.Errorf("friction %g: keep and strength are %v and %v, want %v and %v", friction, keep, strength, wantKeep, wantStrength)
		}
	}
}

func TestCCAdLValidate(t *testing.T) {
	for _, c := range []struct {
		sampler langevin.CCAdL
		want    string
	}{
		{langevin.CCAdL{Friction: 0.1, Alpha: 0.99, Coupling: 1}, ""},
		{langevin.CCAdL{Friction: 1, Coupling: 1, Couplings: "conv1=0.1"}, ""},
		{langevin.CCAdL{Coupling: 1}, "Friction must be above 0 and at most 1, got 0"},
		{langevin.CCAdL{Friction: 1.5, Coupling: 1}, "Friction must be above 0 and at most 1, got 1.5"},
		{langevin.CCAdL{Friction: 0.1, Alpha: 1, Coupling: 1}, "Alpha must be at least 0 and below 1, got 1"},
		{langevin.CCAdL{Friction: 0.1, Alpha: math.NaN(), Coupling: 1}, "Alpha must be at least 0 and below 1, got NaN"},
		{langevin.CCAdL{Friction: 0.1}, "Coupling must be positive, got 0"},
		{langevin.CCAdL{Friction: 0.1, Coupling: 1, Couplings: "conv1=0"}, "Couplings: conv1 must be positive, got 0"},
	} {
		err := c.sampler.Validate()
		if (err == nil) != (c.want == "") || err != nil && !strings.HasPrefix(err.Error(), "langevin: ccadl: "+c.want) {
			t.Errorf("%#v: error is %v, want %q", c.sampler, err, c.want)
		}
	}
}
