package mcmc_test

import (
	"fmt"
	"math"
	"testing"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/stat"

	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/graph/op"
	"github.com/pollen-ml/pollen/langevin/trial"
	"github.com/pollen-ml/pollen/mcmc"
	"github.com/pollen-ml/pollen/tensor"
	"github.com/pollen-ml/pollen/tensor/random"
)

// microcanonical is MCLMC in float64, part by part, as its comment has it.
type microcanonical struct {
	field                    trial.Field
	friction, temperature    float64
	x, u, gradient           []float64
	potential, energy, error float64
	less                     float64 // what d is less in B: 1
	noise                    float64 // the factor of n: 1
	free                     bool    // u keeps what length O gives it
	late                     bool    // O is after both A
}

// kick is B: u turns towards -gU.
func (m *microcanonical) kick(step float64) {
	g, d := floats.Norm(m.gradient, 2), float64(len(m.x))-m.less
	along := -floats.Dot(m.u, m.gradient) / g
	angle := step / 2 * g / (m.temperature * d)
	stretch := math.Cosh(angle) + along*math.Sinh(angle)
	for i := range m.u {
		m.u[i] = (m.u[i] - m.gradient[i]/g*(math.Sinh(angle)+along*(math.Cosh(angle)-1))) / stretch
	}
	m.energy += d * math.Log(stretch)
}

// spread is O.
func (m *microcanonical) spread(z []float64) {
	n := m.noise * math.Sqrt(math.Expm1(2*m.friction)/float64(len(z)))
	for i := range m.u {
		m.u[i] += n * z[i]
	}
	if !m.free {
		floats.Scale(1/floats.Norm(m.u, 2), m.u)
	}
}

// begin draws the direction of a parameter, or of those whose elements follow each other.
func (m *microcanonical) begin(lengths []int, first uint16) {
	m.u = nil
	for i, n := range lengths {
		z := make([]float64, n)
		random.Normals(z, 0, random.Address{Seed: trial.RunSeed, Step: random.MaxStep, Stream: first + uint16(i)})
		m.u = append(m.u, z...)
	}
	floats.Scale(1/floats.Norm(m.u, 2), m.u)
	m.potential = m.field.At(m.x, m.gradient)
}

// move makes B, A, O, A and B.
func (m *microcanonical) move(step float64, z []float64) {
	before := m.potential
	m.energy = 0
	m.kick(step)
	if m.late {
		floats.AddScaled(m.x, step/2, m.u)
	}
	floats.AddScaled(m.x, step/2, m.u)
	m.spread(z)
	if !m.late {
		floats.AddScaled(m.x, step/2, m.u)
	}
	m.potential = m.field.At(m.x, m.gradient)
	m.kick(step)
	m.error = m.energy + (m.potential-before)/m.temperature
}

// TestMCLMCFormula compares positions, energies and step sizes of some steps with the documented
// ones; each part must matter.
func TestMCLMCFormula(t *testing.T) {
	const steps, temperature, size = 12, 0.7, 0.4
	right := func(f trial.Field) *microcanonical {
		return &microcanonical{field: f, friction: 0.3, temperature: temperature, less: 1, noise: 1}
	}
	for _, f := range []trial.Field{trial.DiagonalGaussian{Smallest: 0.5, Largest: 3}, trial.LogGamma{Shape: 1.5}} {
		for _, n := range []int{2, 31, 4099} {
			t.Run(fmt.Sprintf("%T/%d", f, n), func(t *testing.T) {
				step := size * math.Sqrt(float64(n))
				b, _, stream := exactRun{
					field: f, dimensions: n, temperature: temperature, start: trial.Normal(func(int) float64 { return 0.7 }),
					sampler: mcmc.Unadjusted{Dynamics: mcmc.MCLMC{Friction: 0.3, EnergyVariance: 1}, StepSize: step},
				}.build(t)
				session := trial.Load(t, b, graph.LoadOptions{Seed: trial.RunSeed, Chains: 1}, 0)
				x0 := trial.Values(t, session, trial.ParameterName, 0, n)
				var positions [][]float64
				var energies []float64
				for made := range steps {
					trial.Advance(t, session, 1)
					positions = append(positions, trial.Values(t, session, trial.ParameterName+".position", 0, n))
					energies = append(energies, session.Metric(0, mcmc.TraceEnergyError, uint64(made)))
				}
				// far is how far the chain is from a rule's.
				far := func(m *microcanonical) float64 {
					m.x, m.gradient = append([]float64{}, x0...), make([]float64, n)
					m.begin([]int{n}, stream)
					worst := 0.0
					for made := range steps {
						for i, got := range positions[made] {
							worst = math.Max(worst, math.Abs(got-m.x[i])/(1+math.Abs(m.x[i])))
						}
						if made > 0 {
							worst = math.Max(worst, math.Abs(energies[made]-m.error)/float64(n))
						}
						z := make([]float64, n)
						random.Normals(z, 0, random.Address{Seed: trial.RunSeed, Step: uint64(made), Stream: stream})
						m.move(step, z)
					}
					return worst
				}
				if off := far(right(f)); !(off < 1e-10) {
					t.Errorf("off the formula by %.3g", off)
				}
				for name, change := range map[string]func(m *microcanonical){
					"d for d - 1":   func(m *microcanonical) { m.less = 0 },
					"T = 1":         func(m *microcanonical) { m.temperature = 1 },
					"no noise":      func(m *microcanonical) { m.noise = 0 },
					"more noise":    func(m *microcanonical) { m.noise = 1.01 },
					"another L":     func(m *microcanonical) { m.friction *= 1.01 },
					"a free length": func(m *microcanonical) { m.free = true },
					"O after A":     func(m *microcanonical) { m.late = true },
				} {
					m := right(f)
					change(m)
					if off := far(m); off < 1e-8 {
						t.Errorf("%s: not noticed: off by %.3g", name, off)
					}
				}
			})
		}
	}
}

// TestMCLMCAcrossParameters: parameters have one direction together.
func TestMCLMCAcrossParameters(t *testing.T) {
	const k, first, second, size, steps = 1.3, 3, 4100, 20, 5
	b := graph.New(tensor.Float64)
	normal := trial.Normal(func(int) float64 { return 1 })
	names, lengths := []string{"a", "b"}, []int{first, second}
	field := trial.DiagonalGaussian{Smallest: k, Largest: k}
	var terms []*graph.Node
	for i, name := range names {
		terms = append(terms, field.Potential(b, b.Parameter(name, normal, lengths[i])))
	}
	stream := b.Stream()
	sampler := mcmc.Unadjusted{Dynamics: mcmc.MCLMC{Friction: 0.3, EnergyVariance: 1}, StepSize: size}
	if _, err := sampler.Attach(b, mcmc.Target{Potential: b.Apply(op.Add{}, terms[0], terms[1]), Temperature: 1}); err != nil {
		t.Fatal(err)
	}
	session := trial.Load(t, b, graph.LoadOptions{Seed: trial.RunSeed, Chains: 1}, 0)
	read := func(suffix string) []float64 {
		var all []float64
		for i, name := range names {
			all = append(all, trial.Values(t, session, name+suffix, 0, lengths[i])...)
		}
		return all
	}
	m := &microcanonical{field: field, friction: 0.3, temperature: 1, less: 1, noise: 1, x: read(""), gradient: make([]float64, first+second)}
	m.begin(lengths, stream+1)
	for made := range steps {
		z := make([]float64, first+second)
		random.Normals(z[:first], 0, random.Address{Seed: trial.RunSeed, Step: uint64(made), Stream: stream + 1})
		random.Normals(z[first:], 0, random.Address{Seed: trial.RunSeed, Step: uint64(made), Stream: stream + 2})
		trial.Advance(t, session, 1)
		if off := floats.Distance(read(".position"), m.x, math.Inf(1)); !(off < 1e-10) {
			t.Fatalf("step %d: off by %.3g", made, off)
		}
		m.move(size, z)
	}
}

// mclmcVariances returns the variances of the discretised chain on f in very many dimensions, where
// the state is typical: with steps of the time r = s/sqrt(d) and momenta of variance 1, the B that
// ends in the middle of two A makes p into a p - b c x along a curvature c, a = 1/cosh y,
// b = tanh(y)/G, y = r G/2, G^2 being the mean of c^2 x^2. There p has the variance 1, and x and p
// have the covariance -r/2, so that A does not change the variance of x. Before that B, p is
// uncorrelated with x.
func mclmcVariances(f trial.DiagonalGaussian, temperature, step float64, dimensions int) (variances [trial.Classes]float64) {
	r, lo, hi := step/math.Sqrt(float64(dimensions)), 1e-6, 1e3
	for range 100 {
		g := math.Sqrt(lo * hi)
		squares := 0.0
		for i := range variances {
			c := f.Curvature(i) / temperature
			variances[i] = r * g / (2 * c * math.Tanh(r*g/2))
			squares += c * c * variances[i] / trial.Classes
		}
		if math.Sqrt(squares) > g {
			lo = g
		} else {
			hi = g
		}
	}
	return variances
}

// TestMCLMCTheory: the first orders that MCLMC's comment has.
func TestMCLMCTheory(t *testing.T) {
	const temperature, step, dimensions = 0.7, 0.3, 10
	f := trial.DiagonalGaussian{Smallest: 0.5, Largest: 4}
	mean := 0.0
	for i := range trial.Classes {
		mean += f.Curvature(i) * step * step / (dimensions * temperature) / trial.Classes
	}
	for i, got := range mclmcVariances(f, temperature, step, dimensions) {
		if want := mean / 12; !(math.Abs(got*f.Curvature(i)/temperature-1-want) < 0.005*mean) {
			t.Errorf("curvature %v: the variance is too large by %.4g, want %.4g", f.Curvature(i), got*f.Curvature(i)/temperature-1, want)
		}
	}
}

// TestMCLMCMoments: the variances along each curvature, and the variance of the energy's error, of
// a chain in many dimensions agree with MCLMC's comment, at the step size that the warm-up chose
// for the requested variance and froze. Wrong values are refuted.
func TestMCLMCMoments(t *testing.T) {
	const dimensions, temperature, warmup = 4000, 0.6, 600
	for _, f := range []trial.DiagonalGaussian{{Smallest: 2, Largest: 2}, {Smallest: 0.5, Largest: 4}} {
		for _, energy := range []float64{5e-4, 0.02} {
			t.Run(fmt.Sprintf("%v/%v", f, energy), func(t *testing.T) {
				session, _ := exactRun{
					field: f, dimensions: dimensions, chains: 1, temperature: temperature,
					start:   trial.Normal(func(i int) float64 { return math.Sqrt(temperature / f.Curvature(i)) }),
					sampler: mcmc.Unadjusted{Dynamics: mcmc.MCLMC{Friction: 0.3, EnergyVariance: energy}, StepSize: 0.1, Warmup: warmup},
				}.load(t, graph.LoadOptions{Seed: trial.RunSeed}, 0)
				trial.Advance(t, session, warmup+100)
				step := session.Metric(0, mcmc.TraceStepSize, session.Steps()-1)
				readings := trial.StepsOf(t, 2000)
				var squares [trial.Classes]float64
				failures := 0.0
				for range readings {
					trial.Advance(t, session, 2)
					if s := session.Metric(0, mcmc.TraceStepSize, session.Steps()-1); s != step {
						t.Fatalf("the step size changes from %v to %v after the warm-up", step, s)
					}
					failures += square(session.Metric(0, mcmc.TraceEnergyError, session.Steps()-1)) / float64(dimensions*readings)
					for i, x := range trial.Values(t, session, trial.ParameterName+".position", 0, dimensions) {
						squares[i%trial.Classes] += x * x * trial.Classes / float64(dimensions*readings)
					}
				}
				if !(math.Abs(failures/energy-1) < 0.25) {
					t.Errorf("the energy's variance is %.3g, want %.3g", failures, energy)
				}
				far := func(want func(i int) float64) (worst float64) {
					for i, got := range squares {
						worst = math.Max(worst, math.Abs(got/want(i)-1))
					}
					return worst
				}
				with := func(factor float64) func(i int) float64 {
					variances := mclmcVariances(f, temperature, step*factor, dimensions)
					return func(i int) float64 { return variances[i] }
				}
				exact := func(i int) float64 { return temperature / f.Curvature(i) }
				t.Logf("step size %.4g, energy variance %.3g, variances off by %.3g from theory, by %.3g from the target", step, failures, far(with(1)), far(exact))
				if off := far(with(1)); !(off < 0.005) {
					t.Errorf("variances %.4g are off by %.3g", squares, off)
				}
				for name, wrong := range map[string]func(i int) float64{
					"no bias": exact, "half the squared step": with(math.Sqrt(0.5)), "twice the squared step": with(math.Sqrt2),
					"OBABO's bias": func(i int) float64 {
						return exact(i) / (1 - f.Curvature(i)*step*step/(dimensions*temperature)/4)
					},
				} {
					if off := far(wrong); off < 0.007 {
						t.Errorf("%s: not noticed: off by %.3g", name, off)
					}
				}
				if f.Smallest == f.Largest && energy < 1e-3 && !(math.Abs(far(exact)/math.Cbrt(energy/12)-1) < 0.2) {
					t.Errorf("the bias is %.3g, want about %.3g", far(exact), math.Cbrt(energy/12))
				}
			})
		}
	}
}

// TestMCLMCInFewDimensions: with small steps theta has the density exp(-U/T) in any number of
// dimensions; with d instead of d - 1 in B it would have the temperature T (d-1)/d.
func TestMCLMCInFewDimensions(t *testing.T) {
	const chains, temperature, k = 60, 0.8, 1.7
	for _, dimensions := range []int{2, 3, 5} {
		traces := exactRun{
			field: trial.DiagonalGaussian{Smallest: k, Largest: k}, dimensions: dimensions, chains: chains, temperature: temperature,
			start:   trial.Normal(func(int) float64 { return math.Sqrt(temperature / k) }),
			sampler: mcmc.Unadjusted{Dynamics: mcmc.MCLMC{Friction: 0.15, EnergyVariance: 1}, StepSize: 0.15},
		}.draw(t, 900, 4)
		var means []float64 // of chains
		for element := range dimensions {
			for chain, trace := range traceOf(t, traces, "w", element) {
				if len(means) <= chain {
					means = append(means, 0)
				}
				for _, x := range trace {
					means[chain] += x * x * k / temperature / float64(dimensions*len(trace))
				}
			}
		}
		mean, std := stat.MeanStdDev(means, nil)
		z := (mean - 1) / (std / math.Sqrt(chains))
		if !(math.Abs(z) < trial.ZLimit) && !(math.Abs(mean-1) < 0.01) {
			t.Errorf("%d dimensions: the variance is %.4g of the target's, z = %.1f", dimensions, mean, z)
		}
		wrong := float64(dimensions-1) / float64(dimensions)
		if z := (mean - wrong) / (std / math.Sqrt(chains)); z < trial.ZLimit+1 {
			t.Errorf("%d dimensions: d for d - 1 is not noticed: z = %.1f", dimensions, z)
		}
	}
}

// TestMCLMCSkewed checks the mean and variance for a target that is not a Gaussian: log(T X), with
// X from the gamma distribution of shape Shape/T = 2.
func TestMCLMCSkewed(t *testing.T) {
	const dimensions, temperature = 2000, 0.5
	traces := exactRun{
		field: trial.LogGamma{Shape: 1}, dimensions: dimensions, chains: 1, temperature: temperature, start: trial.Normal(func(int) float64 { return 0.8 }),
		sampler: mcmc.Unadjusted{Dynamics: mcmc.MCLMC{Friction: 0.3, EnergyVariance: 1e-5}, StepSize: 0.1, Warmup: 500},
	}.draw(t, 400, 5)
	mean, square := 0.0, 0.0
	for element := range dimensions {
		for _, x := range traceOf(t, traces, "w", element)[0] {
			mean, square = mean+x/(400*dimensions), square+x*x/(400*dimensions)
		}
	}
	const gamma = 0.57721566490153286
	wantMean, wantVariance := math.Log(temperature)+1-gamma, math.Pi*math.Pi/6-1
	if !(math.Abs(mean-wantMean) < 0.015) || !(math.Abs((square-mean*mean)/wantVariance-1) < 0.025) {
		t.Errorf("mean %.4g and variance %.4g, want %.4g and %.4g", mean, square-mean*mean, wantMean, wantVariance)
	}
}

// TestMCLMCWarmup: from a first step that is far too small or too large, and from far outside, the
// step size comes to the same.
func TestMCLMCWarmup(t *testing.T) {
	const dimensions, warmup, energy = 500, 800, 1e-3
	f, want := trial.DiagonalGaussian{Smallest: 1, Largest: 4}, 0.0
	for _, first := range []float64{1, 1e-4, 1e3} {
		for _, scale := range []float64{1, 0.01, 3} {
			session, _ := exactRun{
				field: f, dimensions: dimensions, chains: 1, temperature: 1, start: trial.Normal(func(int) float64 { return scale }),
				sampler: mcmc.Unadjusted{Dynamics: mcmc.MCLMC{Friction: 0.1, EnergyVariance: energy}, StepSize: first, Warmup: warmup},
			}.load(t, graph.LoadOptions{Seed: trial.RunSeed}, 0)
			trial.Advance(t, session, warmup+1)
			got := session.Metric(0, mcmc.TraceStepSize, session.Steps()-1)
			if want == 0 {
				want = got
			}
			if !(math.Abs(got/want-1) < 0.06) { // the energy's variance grows by its sixth power
				t.Errorf("first step %v, start %v: step size %.4g, where it was %.4g", first, scale, got, want)
			}
		}
	}
}

// TestMCLMCBound: the step size adapts to MaxVariance where EnergyVariance would be more.
func TestMCLMCBound(t *testing.T) {
	const dimensions, warmup = 2000, 300
	step := func(energy float64) float64 {
		session, _ := exactRun{
			field: trial.DiagonalGaussian{Smallest: 1, Largest: 4}, dimensions: dimensions, chains: 1, temperature: 1,
			start:   trial.Normal(func(int) float64 { return 1 }),
			sampler: mcmc.Unadjusted{Dynamics: mcmc.MCLMC{Friction: 0.1, EnergyVariance: energy, MaxVariance: 0.5}, StepSize: 1, Warmup: warmup},
		}.load(t, graph.LoadOptions{Seed: trial.RunSeed}, 0)
		trial.Advance(t, session, warmup+1)
		return session.Metric(0, mcmc.TraceStepSize, session.Steps()-1)
	}
	most, above, below := step(0.5/dimensions), step(1), step(0.1/dimensions)
	if above != most || !(below < 0.9*most) {
		t.Errorf("step sizes %v with a variance of 1/2, %v with more and %v with 1/10", most, above, below)
	}
}

func TestMCLMCRefuses(t *testing.T) {
	good := mcmc.Unadjusted{Dynamics: mcmc.MCLMC{Friction: 1, EnergyVariance: 1}, StepSize: 0.1}
	for want, change := range map[string]func(u *mcmc.Unadjusted){
		"Friction must be positive, got 0":         func(u *mcmc.Unadjusted) { u.Dynamics.Friction = 0 },
		"Friction must be positive, got +Inf":      func(u *mcmc.Unadjusted) { u.Dynamics.Friction = math.Inf(1) },
		"EnergyVariance must be positive, got 0":   func(u *mcmc.Unadjusted) { u.Dynamics.EnergyVariance = 0 },
		"EnergyVariance must be positive, got NaN": func(u *mcmc.Unadjusted) { u.Dynamics.EnergyVariance = math.NaN() },
		"StepSize must be positive, got 0":         func(u *mcmc.Unadjusted) { u.StepSize = 0 },
		"steps, got -1":                            func(u *mcmc.Unadjusted) { u.Warmup = -1 },
	} {
		u := good
		change(&u)
		checkRefused(t, want, u, tensor.Float64, nil)
	}
	checkRefused(t, "must be of float64", good, tensor.Float32, nil)
	checkRefused(t, `"energy error": the`, good, tensor.Float64, func(t *mcmc.Target, w *graph.Node) {
		t.Quantities = []mcmc.Quantity{{Name: mcmc.TraceEnergyError, Node: w}}
	})
	b := graph.New(tensor.Float64)
	w := b.Parameter("w", nil, 1)
	if _, err := good.Attach(b, mcmc.Target{Potential: trial.SumOfSquares(b, w), Temperature: 1}); err == nil {
		t.Error("one dimension: no error")
	}
}
