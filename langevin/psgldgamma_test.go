package langevin_test

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/graph/op"
	"github.com/pollen-ml/pollen/internal/testenv"
	"github.com/pollen-ml/pollen/langevin"
	"github.com/pollen-ml/pollen/langevin/trial"
	"github.com/pollen-ml/pollen/tensor"
)

// curvedRule is PSGLD with Gamma.
func curvedRule(p langevin.PSGLD) rule { return gammaRule(p, 1, 1) }

// gammaRule is PSGLD with Gamma times a factor, where dV remembers the given share of its past.
func gammaRule(p langevin.PSGLD, factor, memory float64) rule {
	return func(e element) float64 {
		keep := adaptedShare(p, e)
		v := adaptedV(p, e)
		*e.chi = memory*keep**e.chi + 2*(1-keep)*e.g*e.curvature
		g := 1 / (p.Lambda + math.Sqrt(v))
		theta := e.theta - e.h*g*e.n*e.g + math.Sqrt(2*e.h*e.temperature*g)*e.xi
		if v > 0 && keep == p.Alpha {
			theta -= factor * e.h * e.temperature * *e.chi * g * g / (2 * math.Sqrt(v))
		}
		return theta
	}
}

func wrongGamma(p langevin.PSGLD) map[string]rule {
	right := curvedRule(p)
	return map[string]rule{
		"no Gamma":                    psgldRule(p),
		"Gamma of the wrong sign":     gammaRule(p, -1, 1),
		"half of Gamma":               gammaRule(p, 0.5, 1),
		"the present step's Gamma":    gammaRule(p, 1, 0),
		"Gamma of the gradient of U":  gammaRule(p, p.Lambda*50, 1),
		"the likelihood's curvature":  func(e element) float64 { e.curvature *= 0.9; return right(e) },
		"Gamma that is not cooled":    func(e element) float64 { return right(e) + gammaDrift(p, e)*(1-1/e.temperature) },
		"Gamma with another's weight": func(e element) float64 { e.curvature /= e.n; return right(e) },
		"Gamma from the first step on": func(e element) float64 {
			theta := right(e)
			if adaptedShare(p, e) < p.Alpha {
				theta += gammaDrift(p, e)
			}
			return theta
		},
	}
}

// gammaDrift returns h T Gamma for the state at the end of a rule's step.
func gammaDrift(p langevin.PSGLD, e element) float64 {
	g := 1 / (p.Lambda + math.Sqrt(*e.memory))
	return -e.h * e.temperature * *e.chi * g * g / (2 * math.Sqrt(*e.memory))
}

// bent is the sum of theta^2/2 + Skew exp(theta) over the elements, plus Coupling x y over pairs of
// neighbours: skewed, and correlated.
type bent struct{ Skew, Coupling float64 }

func (f bent) At(theta, slope []float64) float64 {
	total := 0.0
	for i, x := range theta {
		total += x*x/2 + f.Skew*math.Exp(x)
		slope[i] = x + f.Skew*math.Exp(x)
		if f.Coupling != 0 {
			y := theta[i^1]
			total += f.Coupling * x * y / 2
			slope[i] += f.Coupling * y
		}
	}
	return total
}

func (f bent) Potential(b *graph.Builder, w *graph.Node) *graph.Node {
	skew := b.Apply(op.Scale{Factor: f.Skew}, b.Apply(op.Exp{}, w))
	u := b.Apply(op.Sum{}, b.Apply(op.Add{}, b.Apply(op.Scale{Factor: 0.5}, b.Apply(op.Squared{}, w)), skew))
	if f.Coupling != 0 {
		u = b.Apply(op.Add{}, u, trial.Pairs(b, w, 0, f.Coupling/2, f.Coupling/2, 0))
	}
	return u
}

// moments are the means of functions of the first elements under exp(-U/T), on a grid.
func (f bent) moments(dimensions int, temperature float64, statistics func(theta []float64) []float64) []float64 {
	const lo, hi, points = -8.0, 6.0, 281
	theta, slope, weights := make([]float64, dimensions), make([]float64, dimensions), 0.0
	var means []float64
	at := func(i int) float64 { return lo + (hi-lo)*float64(i)/(points-1) }
	for i := range int(math.Pow(points, float64(dimensions))) {
		theta[0] = at(i % points)
		if dimensions == 2 {
			theta[1] = at(i / points)
		}
		weight := math.Exp(-f.At(theta, slope) / temperature)
		weights += weight
		for j, v := range statistics(theta) {
			if i == 0 {
				means = append(means, 0)
			}
			means[j] += weight * v
		}
	}
	for j := range means {
		means[j] /= weights
	}
	return means
}

// gammaRun is a target on which Gamma matters: Lambda is of the order of the gradient, and V
// forgets faster than theta moves. Groups of one or two elements are independent of each other,
// within one chain or, for samplers with few elements, in many chains.
type gammaRun struct {
	field             bent
	group             int
	temperature, step float64
}

func gammaStatistics(theta []float64) []float64 {
	x := theta[0]
	statistics := []float64{x, x * x}
	if len(theta) == 2 {
		y := theta[1]
		statistics = append(statistics, y, y*y, x*y)
	}
	return statistics
}

// averages are each group's at a step size.
func (r gammaRun) averages(t *testing.T, sampler langevin.Sampler, step float64, chains, steps int) [][]float64 {
	t.Helper()
	const every = 4
	dimensions := 1200
	if chains > 1 {
		dimensions = r.group
	}
	session := experiment{
		sampler: sampler, field: r.field, dimensions: dimensions, chains: chains, dataSize: shapeDataSize, step: step,
		temperature: r.temperature, start: trial.Normal(func(int) float64 { return 1 }),
	}.load(t)
	trial.Advance(t, session, steps/5)
	averages := make([][]float64, chains*dimensions/r.group)
	for range steps / every {
		trial.Advance(t, session, every)
		for chain := range chains {
			theta := trial.Values(t, session, trial.ParameterName, chain, dimensions)
			for i := 0; i < dimensions; i += r.group {
				group := (chain*dimensions + i) / r.group
				for j, v := range gammaStatistics(theta[i : i+r.group]) {
					if len(averages[group]) <= j {
						averages[group] = append(averages[group], 0)
					}
					averages[group][j] += v * every / float64(steps)
				}
			}
		}
	}
	return averages
}

// z is the largest score against the exact moments, of averages that are extrapolated to the step
// size 0: the bias of first order in h drops out.
func (r gammaRun) z(t *testing.T, sampler langevin.Sampler, chains int) float64 {
	t.Helper()
	steps := trial.StepsOf(t, 350)
	coarse, fine := r.averages(t, sampler, r.step, chains, steps), r.averages(t, sampler, r.step/2, chains, 2*steps)
	for group := range fine {
		for j := range fine[group] {
			fine[group][j] = 2*fine[group][j] - coarse[group][j]
		}
	}
	want := r.field.moments(r.group, r.temperature, gammaStatistics)
	worst := 0.0
	for _, z := range scores(fine, make([][]float64, len(fine)), func([]float64) []float64 { return want }) {
		worst = math.Max(worst, math.Abs(z))
	}
	return worst
}

// TestGamma: with Gamma the averages go to the target's as the step size goes to 0, and without it,
// or with a Gamma that is off by a factor, they do not.
func TestGamma(t *testing.T) {
	testenv.NeedsAll(t, "long chains")
	alphas, runs := []float64{0, 0.5}, []gammaRun{
		{field: bent{Skew: 1}, group: 1, temperature: 1, step: 0.1 / shapeDataSize},
		{field: bent{Skew: 0.5, Coupling: 0.5}, group: 2, temperature: 0.7, step: 0.1 / shapeDataSize},
	}
	if trial.OnEmulator() {
		alphas, runs = alphas[1:], runs[1:]
	}
	for _, alpha := range alphas {
		for _, run := range runs {
			p := func(gamma langevin.Gamma) langevin.PSGLD {
				return langevin.PSGLD{Alpha: alpha, Lambda: 1. / shapeDataSize, Gamma: gamma}
			}
			check := func(sampler langevin.Sampler, name string, chains int, right bool) {
				t.Helper()
				z := run.z(t, sampler, chains)
				t.Logf("Alpha %v, groups of %d, %s: z = %.1f", alpha, run.group, name, z)
				if right != (z < trial.ZLimit) {
					t.Errorf("Alpha %v, groups of %d, %s: z = %.1f, want it below %v: %v", alpha, run.group, name, z, trial.ZLimit, right)
				}
			}
			check(p(langevin.GammaHutchinson), "hutchinson", 1, true)
			check(p(langevin.GammaNone), "none", 1, false)
			if alpha == 0 {
				continue
			}
			if run.group == 2 {
				check(p(langevin.GammaExact), "exact", trial.ChainsOf(t, 40), true)
			}
			check(langevin.MisjudgedPSGLD{PSGLD: p(langevin.GammaHutchinson), Factor: -1}, "the wrong sign", 1, false)
			if trial.OnEmulator() {
				continue
			}
			// That is nearly the fraction of the present step only, 1 - Alpha.
			check(langevin.MisjudgedPSGLD{PSGLD: p(langevin.GammaHutchinson), Factor: 0.5}, "half of Gamma", 1, false)
		}
	}
}

// TestGammaBegins: a network's weights begin where some gradients are near 0, and with them V.
// Gamma, which has no bound but Hessian/Lambda^2, must wait until V is an average.
func TestGammaBegins(t *testing.T) {
	p := perceptron{examples: 100, inputs: 60, hidden: 8, outputs: 4}
	for _, gamma := range []langevin.Gamma{langevin.GammaNone, langevin.GammaHutchinson} {
		const steps = 150
		b := graph.New(tensor.Float32)
		sampler := langevin.PSGLD{Alpha: 0.99, Lambda: 1e-5, Gamma: gamma}
		rates := slices.Repeat([]float64{0.002 / float64(p.examples)}, steps)
		err := langevin.Attach(b, sampler, langevin.Posterior{DataSize: p.examples, Prior: langevin.Gaussian(0.3)}, p.build(b), rates,
			slices.Repeat([]float64{1}, steps))
		if err != nil {
			t.Fatal(err)
		}
		session := trial.Load(t, b, graph.LoadOptions{Seed: trial.RunSeed}, 1)
		trial.Advance(t, session, steps)
		largest := 0.0
		for i, name := range p.names() {
			for _, theta := range trial.Values(t, session, name, 0, p.sizes()[i]) {
				largest = max(largest, math.Abs(theta))
			}
		}
		t.Logf("Gamma %s: the largest weight is %.3g", gamma, largest)
		if !(largest < 10) {
			t.Errorf("Gamma %s: after %d steps the largest weight is %v, want it below 10", gamma, steps, largest)
		}
	}
}

// TestGammaRefuses: more parameters than exact curvature allows, and a way to attach that finds no
// curvature.
func TestGammaRefuses(t *testing.T) {
	b := graph.New(tensor.Float32)
	loss := trial.Target{Field: trial.DiagonalGaussian{Smallest: 1, Largest: 1}, DataSize: 10}.Loss(b, b.Parameter(trial.ParameterName, nil, 65))
	p := langevin.PSGLD{Alpha: 0.9, Lambda: 1, Gamma: langevin.GammaExact}
	err := langevin.Attach(b, p, langevin.Posterior{DataSize: 10}, loss, []float64{1}, []float64{1})
	if err == nil || !strings.Contains(err.Error(), "at most 64 elements, got 65") {
		t.Errorf("error %v", err)
	}
	b = graph.New(tensor.Float32)
	w := b.Parameter(trial.ParameterName, nil, 3)
	p.Update(b, langevin.UpdateInputs{Name: trial.ParameterName, DataSize: 1, Rates: b.Table("r", []float64{1}), Temperatures: b.Table("t", []float64{1})}, w, w)
	if err := b.Err(); err == nil || !strings.Contains(err.Error(), "attached by Attach") {
		t.Errorf("error %v", err)
	}
}
