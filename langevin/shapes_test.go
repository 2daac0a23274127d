package langevin_test

import (
	"math"
	"testing"

	"github.com/pollen-ml/pollen/langevin"
	"github.com/pollen-ml/pollen/langevin/trial"
)

// shape is a target that is not a round Gaussian. Its elements come in groups, independent of each
// other and alike.
type shape struct {
	name        string
	field       trial.Field
	group       int
	temperature float64
	// step is the effective step size h G of an element whose gradient of U has the root mean
	// square gradient.
	step, gradient float64
	scale          func(i int) float64 // of the start
	burnIn, steps  int
	every          int // how many steps lie between two states that are averaged
	// statistics are functions of a group's state; expectation are their exact means under the
	// discretised chain with the step sizes h G of the group's elements; wrong are means that must
	// be refuted.
	statistics  func(theta []float64) []float64
	expectation func(steps []float64) []float64
	wrong       map[string]func(steps []float64) []float64
}

const shapeDataSize = 10

// residuals are, for each statistic and group, the average over the chain minus its expectation.
func (s shape) residuals(t *testing.T, row row) (averages [][]float64, steps [][]float64) {
	t.Helper()
	const dimensions = 1000
	h := s.step / row.expected(s.gradient/shapeDataSize)
	session := experiment{
		sampler: row.sampling, field: s.field, dimensions: dimensions, dataSize: shapeDataSize, step: h, temperature: s.temperature,
		start: trial.Normal(s.scale),
	}.load(t)
	trial.Advance(t, session, row.settled+s.burnIn)
	averages = make([][]float64, dimensions/s.group)
	samples := trial.StepsOf(t, s.steps) / s.every
	for range samples {
		trial.Advance(t, session, s.every)
		theta := trial.Values(t, session, trial.ParameterName, 0, dimensions)
		for g := range averages {
			statistics := s.statistics(theta[g*s.group : (g+1)*s.group])
			if averages[g] == nil {
				averages[g] = make([]float64, len(statistics))
			}
			for i, v := range statistics {
				averages[g][i] += v / float64(samples)
			}
		}
	}
	for g, preconditioner := range row.preconditioner(t, session, 0, dimensions) {
		if g%s.group == 0 {
			steps = append(steps, nil)
		}
		steps[g/s.group] = append(steps[g/s.group], h*preconditioner)
	}
	return averages, steps
}

// scores are the z of each statistic: its mean residual over groups in units of the standard error
// that the groups themselves show, however many effective samples each has.
func scores(averages, steps [][]float64, expectation func(steps []float64) []float64) []float64 {
	n := float64(len(averages))
	var sums, squares []float64
	for g, average := range averages {
		want := expectation(steps[g])
		if sums == nil {
			sums, squares = make([]float64, len(want)), make([]float64, len(want))
		}
		for i := range want {
			residual := average[i] - want[i]
			sums[i] += residual
			squares[i] += residual * residual
		}
	}
	z := make([]float64, len(sums))
	for i := range z {
		mean := sums[i] / n
		z[i] = mean / math.Sqrt((squares[i]/n-mean*mean)/(n-1))
	}
	return z
}

// TestShapes compares the averages over chains on skewed, correlated and ill-conditioned targets
// with the discretised chain's.
func TestShapes(t *testing.T) {
	for _, row := range rows() {
		for _, s := range []shape{skewed(t), correlated(), illConditioned()} {
			if !row.euler {
				continue
			}
			t.Run(row.name+"/"+s.name, func(t *testing.T) {
				averages, steps := s.residuals(t, row)
				for i, z := range scores(averages, steps, s.expectation) {
					if !(math.Abs(z) < trial.ZLimit) {
						t.Errorf("statistic %d: z = %.1f", i, z)
					}
				}
				s.checkWrong(t, averages, steps)
			})
		}
	}
}

// checkWrong fails the test unless the wrong expectations are refuted.
func (s shape) checkWrong(t *testing.T, averages, steps [][]float64) {
	t.Helper()
	for name, wrong := range s.wrong {
		worst, foreseen := 0.0, 0.0
		right := scores(averages, steps, s.expectation)
		for i, z := range scores(averages, steps, wrong) {
			worst, foreseen = math.Max(worst, math.Abs(z)), math.Max(foreseen, math.Abs(z-right[i]))
		}
		if worst < trial.ZLimit && !trial.Underpowered(foreseen) {
			t.Errorf("%s: not noticed: z = %.1f", name, worst)
		}
	}
}

// skewed is the log-gamma target, whose discretised chain is solved on a grid.
func skewed(t *testing.T) shape {
	f, temperature := trial.LogGamma{Shape: 1}, 0.5
	chain := func(step float64) []float64 { return chainOn(f, step, temperature).averages(t, identity, square, cube) }
	tables := map[[2]float64][][]float64{}
	expectation := func(steps []float64) []float64 {
		// The averages at three step sizes, with a parabola through them.
		const lo, middle, hi = 0.02, 0.1, 0.22
		key := [2]float64{lo, hi}
		if tables[key] == nil {
			tables[key] = [][]float64{chain(lo), chain(middle), chain(hi)}
		}
		x, want := steps[0], make([]float64, 3)
		for i := range want {
			a, b, c := tables[key][0][i], tables[key][1][i], tables[key][2][i]
			want[i] = a*(x-middle)*(x-hi)/((lo-middle)*(lo-hi)) + b*(x-lo)*(x-hi)/((middle-lo)*(middle-hi)) +
				c*(x-lo)*(x-middle)/((hi-lo)*(hi-middle))
		}
		return want
	}
	return shape{
		name: "skewed", field: f, group: 1, temperature: temperature, step: 0.1, gradient: math.Sqrt(temperature * f.Shape),
		scale:  func(int) float64 { return 0.8 },
		burnIn: 200, steps: 2000, every: 2,
		statistics:  func(theta []float64) []float64 { x := theta[0]; return []float64{x, x * x, x * x * x} },
		expectation: expectation,
		wrong: map[string]func(steps []float64) []float64{
			"the mirror image": func(steps []float64) []float64 {
				want := expectation(steps)
				return []float64{-want[0], want[1], -want[2]}
			},
			"the continuous limit": func([]float64) []float64 { return momentsOf(f, temperature) },
		},
	}
}

// chainOn is SGLD on one element, of effective step size h.
func chainOn(f trial.LogGamma, h, temperature float64) markov {
	return markov{
		drift:    func(x float64) float64 { return -h * (math.Exp(x) - f.Shape) },
		variance: func(float64) float64 { return 2 * h * temperature },
		lo:       -8, hi: 3, points: 220,
	}
}

// momentsOf are E x, E x^2 and E x^3 of log(T X), X from the gamma distribution of shape
// Shape/T = 2: with digamma(2) = 1 - gamma and its derivatives pi^2/6 - 1 and 2 - 2 zeta(3).
func momentsOf(f trial.LogGamma, temperature float64) []float64 {
	if f.Shape/temperature != 2 {
		panic("the digamma function is known here only at 2")
	}
	const gamma, zeta3 = 0.57721566490153286, 1.2020569031595943
	mean, variance, third := math.Log(temperature)+1-gamma, math.Pi*math.Pi/6-1, 2-2*zeta3
	return []float64{mean, variance + mean*mean, third + 3*mean*variance + mean*mean*mean}
}

// TestSkewedTheory: the bias of the discretised chain is of first order in the step, and the rest
// is the exact distribution.
func TestSkewedTheory(t *testing.T) {
	f, temperature := trial.LogGamma{Shape: 1}, 0.5
	functions := []func(float64) float64{identity, square, cube}
	coarse := chainOn(f, 0.08, temperature).averages(t, functions...)
	fine := chainOn(f, 0.04, temperature).averages(t, functions...)
	for i, want := range momentsOf(f, temperature) {
		if extrapolated := 2*fine[i] - coarse[i]; math.Abs(extrapolated-want) > 0.1*math.Abs(coarse[i]-want)+1e-4 {
			t.Errorf("moment %d: %.5f and %.5f at steps 0.08 and 0.04 give %.5f at 0, want %.5f", i+1, coarse[i], fine[i], extrapolated, want)
		}
	}
}

// correlated is a Gaussian of two variables, whose covariance C solves C = M C M' + 2 T H, with
// M = 1 - H A and H = diag(h G).
func correlated() shape {
	f, temperature := trial.CorrelatedGaussian{A: 2, B: 1.2, C: 1}, 0.7
	covariance := func(f trial.CorrelatedGaussian) func(steps []float64) []float64 {
		return func(steps []float64) []float64 {
			p, q := steps[0], steps[1]
			a, b, c, d := 1-p*f.A, -p*f.B, -q*f.B, 1-q*f.C
			xx, xy, yy := 0.0, 0.0, 0.0
			for range 1000 {
				xx, xy, yy = a*a*xx+2*a*b*xy+b*b*yy+2*temperature*p, a*c*xx+(a*d+b*c)*xy+b*d*yy, c*c*xx+2*c*d*xy+d*d*yy+2*temperature*q
			}
			return []float64{xx, xy, yy}
		}
	}
	return shape{
		name: "correlated", field: f, group: 2, temperature: temperature, step: 0.15, gradient: math.Sqrt(1.5 * temperature),
		scale:  func(int) float64 { return 1 },
		burnIn: 300, steps: 3000, every: 3,
		statistics:  func(theta []float64) []float64 { x, y := theta[0], theta[1]; return []float64{x * x, x * y, y * y} },
		expectation: covariance(f),
		wrong: map[string]func(steps []float64) []float64{
			"the other diagonal":  covariance(trial.CorrelatedGaussian{A: f.A, B: -f.B, C: f.C}),
			"no correlation":      covariance(trial.CorrelatedGaussian{A: f.A, B: 0, C: f.C}),
			"a little less of it": covariance(trial.CorrelatedGaussian{A: f.A, B: f.B * 0.97, C: f.C}),
		},
	}
}

// illConditioned is a Gaussian with curvatures from 1 to 1000, the stiffest of which takes half a
// step.
func illConditioned() shape {
	f, temperature := trial.DiagonalGaussian{Smallest: 1, Largest: 1000}, 1.0
	variances := func(factor, correction float64) func(steps []float64) []float64 {
		return func(steps []float64) []float64 {
			v := make([]float64, trial.Classes)
			for i, step := range steps {
				k := f.Curvature(i)
				v[i] = factor * temperature / (k * (1 - correction*step*k/2))
			}
			return v
		}
	}
	return shape{
		name: "ill-conditioned", field: f, group: trial.Classes, temperature: temperature,
		step: 0.5 / f.Largest, gradient: math.Sqrt(f.Largest * temperature),
		scale:  func(i int) float64 { return math.Sqrt(temperature / f.Curvature(i)) },
		burnIn: 1000, steps: 4000, every: 20,
		statistics: func(theta []float64) []float64 {
			v := make([]float64, trial.Classes)
			for i, x := range theta {
				v[i] = x * x
			}
			return v
		},
		expectation: variances(1, 1),
		wrong: map[string]func(steps []float64) []float64{
			"half the variance":    variances(0.5, 1),
			"the continuous limit": variances(1, 0),
		},
	}
}

// TestPreconditioningEvensOut: the ratio of the largest to the smallest h G k is about what G
// leaves of the condition number: RMSProp's preconditioner its root, the Fisher information
// nothing.
func TestPreconditioningEvensOut(t *testing.T) {
	s := illConditioned()
	for _, row := range rows() {
		if !row.euler || row.still == 1 {
			continue
		}
		_, steps := s.residuals(t, row)
		var mean [trial.Classes]float64
		for _, group := range steps {
			for i, step := range group {
				mean[i] += step * s.field.(trial.DiagonalGaussian).Curvature(i)
			}
		}
		f := s.field.(trial.DiagonalGaussian)
		gradient := func(k float64) float64 { return math.Sqrt(k*s.temperature) / shapeDataSize }
		want := f.Largest * row.expected(gradient(f.Largest)) / (f.Smallest * row.expected(gradient(f.Smallest)))
		if ratio := mean[trial.Classes-1] / mean[0]; ratio < want/2 || ratio > 2*want {
			t.Errorf("%s: the stiffest direction moves %.3g times as fast as the softest, want about %.3g", row.name, ratio, want)
		}
	}
}

// TestGammaNone: the effect of leaving Gamma out. With no memory at all, V = g^2, the chain is
// Markov in theta only and can be solved on a grid: it samples a density with a factor 1/G too
// many, whatever h is. With a long memory the bias is small.
func TestGammaNone(t *testing.T) {
	const h, lambda = 0.1, 1.0
	run := func(alpha float64, burnIn, steps int) (averages, ignored [][]float64) {
		// In units of the gradient of U, Lambda is 1: h G is h / (1 + |theta|) with Alpha = 0.
		s := shape{
			field: trial.DiagonalGaussian{Smallest: 1, Largest: 1}, group: 1, temperature: 1, step: h, scale: func(int) float64 { return 1 },
			burnIn: burnIn, steps: steps, every: 2,
			statistics: func(theta []float64) []float64 { x := theta[0]; return []float64{x, x * x, x * x * x * x} },
		}
		return s.residuals(t, row{
			sampling:       langevin.PSGLD{Alpha: alpha, Lambda: lambda / shapeDataSize, Gamma: langevin.GammaNone},
			preconditioner: ones, expected: func(float64) float64 { return shapeDataSize },
		})
	}
	preconditioner := func(x float64) float64 { return 1 / (lambda + math.Abs(x)) }
	chain := func(h float64) []float64 {
		return markov{
			drift:    func(x float64) float64 { return -h * preconditioner(x) * x },
			variance: func(x float64) float64 { return 2 * h * preconditioner(x) },
			lo:       -8, hi: 8, points: 320,
		}.averages(t, identity, square, func(x float64) float64 { return x * x * x * x })
	}
	want := chain(h)
	averages, steps := run(0, 200, 1000)
	for i, z := range scores(averages, steps, func([]float64) []float64 { return want }) {
		if !(math.Abs(z) < trial.ZLimit) {
			t.Errorf("statistic %d: z = %.1f", i, z)
		}
	}
	// E x^2 under (1 + |x|) exp(-x^2/2).
	root := math.Sqrt(2 / math.Pi)
	if limit := (1 + 2*root) / (1 + root); math.Abs(2*chain(h / 2)[1]-want[1]-limit) > 0.01 {
		t.Errorf("variance %v at h/2 and %v at h, want %v at 0: not 1, that of the posterior", chain(h / 2)[1], want[1], limit)
	}
	averages, _ = run(0.998, 3000, 3000)
	variance := 0.0
	for _, average := range averages {
		variance += average[1] / float64(len(averages))
	}
	// V is about 1, and so G about 1/2.
	if want := 1 / (1 - h/4); math.Abs(variance/want-1) > 0.03 {
		t.Errorf("with a long memory the variance is %v, want about %v", variance, want)
	}
}
