package langevin_test

import (
	"fmt"
	"math"
	"testing"

	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/internal/testenv"
	"github.com/pollen-ml/pollen/langevin"
	"github.com/pollen-ml/pollen/langevin/trial"
	"github.com/pollen-ml/pollen/tensor"
	"github.com/pollen-ml/pollen/tensor/random"
)

// priorEnergyGradient is -d log p / d theta.
func priorEnergyGradient(p langevin.Prior, theta float64) float64 {
	switch p.Kind {
	case langevin.GaussianPrior:
		return theta / (p.Scale * p.Scale)
	case langevin.LaplacePrior:
		return math.Copysign(1/p.Scale, theta)
	case langevin.StudentTPrior:
		return (p.DoF + 1) * theta / (p.DoF*p.Scale*p.Scale + theta*theta)
	default:
		return 0
	}
}

// priorCurvature is the derivative of priorEnergyGradient.
func priorCurvature(p langevin.Prior, theta float64) float64 {
	switch p.Kind {
	case langevin.GaussianPrior:
		return 1 / (p.Scale * p.Scale)
	case langevin.StudentTPrior:
		spread := p.DoF * p.Scale * p.Scale
		return (p.DoF + 1) * (spread - theta*theta) / square(spread+theta*theta)
	default:
		return 0
	}
}

var everyPrior = []langevin.Prior{langevin.Flat(), langevin.Gaussian(0.5), langevin.Laplace(0.3), langevin.StudentT(3, 0.4)}

// trace is the record of a sampler's steps: each element before and after each step.
type trace struct {
	epsilon float64
	before  [][]element
	after   [][]float64
	virial  []float64
}

// record runs a sampler for ten steps; step size and temperature change from step to step and stay
// for the last two.
func record(t *testing.T, e experiment) trace {
	t.Helper()
	const steps = 10
	var h, temperatures []float64
	for i := range steps - 2 {
		h = append(h, 0.01*float64(1+i%3))
		temperatures = append(temperatures, 0.3+0.2*float64(i))
	}
	session, stream := e.build(t, func(b *graph.Builder, loss *graph.Node) error {
		return langevin.Attach(b, e.sampler, langevin.Posterior{DataSize: e.dataSize, Prior: e.prior}, loss, h, temperatures)
	})
	virial := langevin.VirialPrefix + trial.ParameterName
	tr := trace{epsilon: 0x1p-23}
	if e.dtype == tensor.Float64 {
		tr.epsilon = 0x1p-52
	}
	slope := make([]float64, e.dimensions)
	var xi [2][]float64
	for step := range steps {
		theta := trial.Values(t, session, trial.ParameterName, 0, e.dimensions)
		e.field.At(theta, slope)
		for i := range xi {
			xi[i] = make([]float64, e.dimensions)
			random.Normals(xi[i], 0, random.Address{Seed: trial.RunSeed, Step: uint64(step), Stream: stream + uint16(i)})
		}
		entry := min(step, steps-3)
		var before []element
		for i := range theta {
			before = append(before, element{
				step: step, theta: theta[i], g: (slope[i] + priorEnergyGradient(e.prior, theta[i])) / float64(e.dataSize),
				curvature: (e.field.(trial.DiagonalGaussian).Curvature(i) + priorCurvature(e.prior, theta[i])) / float64(e.dataSize),
				h:         h[entry], temperature: temperatures[entry], n: float64(e.dataSize), xi: xi[0][i], start: xi[1][i],
			})
		}
		trial.Advance(t, session, 1)
		tr.before = append(tr.before, before)
		tr.after = append(tr.after, trial.Values(t, session, trial.ParameterName, 0, e.dimensions))
		tr.virial = append(tr.virial, session.Metric(0, virial, uint64(step)))
	}
	return tr
}

// excess returns the largest distance of the trace from a rule, in units of the possible rounding
// error: 32 epsilon, where the terms of the sums are of order one.
func (tr trace) excess(r rule) float64 {
	worst := 0.0
	memory := make([][2]float64, len(tr.before[0]))
	for step, before := range tr.before {
		for i, e := range before {
			e.memory, e.chi = &memory[i][0], &memory[i][1]
			got, want := tr.after[step][i], r(e)
			distance := math.Abs(got-want) / (32 * tr.epsilon * (1 + math.Abs(e.theta) + math.Abs(want)))
			if math.IsNaN(distance) {
				return math.Inf(1)
			}
			worst = math.Max(worst, distance)
		}
	}
	return worst
}

// changed is the trace with other circumstances: the right rule will not fit it.
func (tr trace) changed(change circumstance) trace {
	other := tr
	other.before = nil
	for step, before := range tr.before {
		changed := append([]element{}, before...)
		for i := range changed {
			change(tr, step, i, &changed[i])
		}
		other.before = append(other.before, changed)
	}
	return other
}

// TestFormula compares every step with the documented formula, in which each term must matter.
func TestFormula(t *testing.T) {
	for _, row := range rows() {
		if row.rule == nil {
			continue
		}
		for _, prior := range everyPrior {
			for _, dtype := range []tensor.DType{tensor.Float32, tensor.Float64} {
				for _, n := range testenv.Some(t, 2, []int{257, 31, 1, 4099}) {
					t.Run(fmt.Sprintf("%s/%v/%v/%d", row.name, prior, dtype, n), func(t *testing.T) {
						tr := record(t, experiment{
							sampler: row.sampler, dtype: dtype, field: trial.DiagonalGaussian{Smallest: 0.5, Largest: 3}, dimensions: n, prior: prior, dataSize: 50,
							start: trial.Normal(func(int) float64 { return 1 }),
						})
						if excess := tr.excess(row.rule); !(excess <= 1) {
							t.Fatalf("off the formula by %.3g times the rounding", excess)
						}
						checkVirials(t, tr)
						if n == 257 {
							checkNoticed(t, row, prior, tr)
						}
					})
				}
			}
		}
	}
}

// checkVirials compares the recorded sums of theta g.
func checkVirials(t *testing.T, tr trace) {
	t.Helper()
	for step, before := range tr.before {
		want, size := 0.0, 0.0
		for _, e := range before {
			want += e.theta * e.g
			size += math.Abs(e.theta * e.g)
		}
		if got := tr.virial[step]; !(math.Abs(got-want) <= 64*tr.epsilon*size) {
			t.Errorf("step %d: theta.g is %v, want %v", step, got, want)
		}
	}
}

// circumstance changes an input of an element's step.
type circumstance func(tr trace, step, i int, e *element)

var wrongCircumstances = map[string]circumstance{
	"temperature 1":             func(_ trace, _, _ int, e *element) { e.temperature = 1 },
	"the last step's step size": func(tr trace, step, i int, e *element) { e.h = tr.before[max(0, step-1)][i].h },
	"the last step's noise":     func(tr trace, step, i int, e *element) { e.xi = tr.before[max(0, step-1)][i].xi },
	"another element's noise":   func(tr trace, step, i int, e *element) { e.xi = tr.before[step][(i+1)%len(tr.before[step])].xi },
}

// wrongPriors changes the slope of an element's prior, divided by N.
var wrongPriors = map[string]func(slope float64, e element) float64{
	"no prior":                   func(float64, element) float64 { return 0 },
	"a prior of the wrong sign":  func(slope float64, _ element) float64 { return -slope },
	"a prior for each example":   func(slope float64, e element) float64 { return slope * e.n },
	"a prior that is not cooled": func(slope float64, e element) float64 { return slope * e.temperature },
}

// checkNoticed runs wrong rules, and the right rule in wrong circumstances, against the trace.
func checkNoticed(t *testing.T, row row, prior langevin.Prior, tr trace) {
	t.Helper()
	check := func(name string, excess float64) {
		t.Helper()
		if !(excess > 100) {
			t.Errorf("%s: not noticed: off by %.3g times the rounding", name, excess)
		}
	}
	for name, wrong := range row.wrong {
		check(name, tr.excess(wrong))
	}
	for name, change := range wrongCircumstances {
		check(name, tr.changed(change).excess(row.rule))
	}
	for name, wrong := range wrongPriors {
		if prior.Kind == langevin.FlatPrior {
			break
		}
		change := func(_ trace, _, _ int, e *element) {
			slope := priorEnergyGradient(prior, e.theta) / e.n
			e.g += wrong(slope, *e) - slope
		}
		check(name, tr.changed(change).excess(row.rule))
	}
}
