package langevin_test

import (
	"fmt"
	"math"
	"testing"

	"github.com/pollen-ml/pollen/diagnostics"
	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/langevin"
	"github.com/pollen-ml/pollen/langevin/trial"
)

// process is a stationary Gaussian process of mean 0, by its autocovariances at the lags 0, 1, ...;
// further ones are 0.
type process []float64

// autoregression is theta' = correlation theta + noise.
func autoregression(variance, correlation float64) process {
	var p process
	for gamma := variance; math.Abs(gamma) > 1e-9*variance || len(p) < 2; gamma *= correlation {
		p = append(p, gamma)
	}
	return p
}

// euler is theta' = theta - h k theta + sqrt(2 h T) xi, when the gradient k theta has noise of the
// given standard deviation.
func euler(h, k, temperature, noise float64) process {
	a := 1 - h*k
	return autoregression((2*h*temperature+h*h*noise*noise)/(1-a*a), a)
}

func (p process) at(lag int) float64 {
	if lag < 0 {
		lag = -lag
	}
	if lag >= len(p) {
		return 0
	}
	return p[lag]
}

// moments are the averages of one element over n states of a chain: of theta, theta^2, and theta
// times the next theta.
type moments struct{ mean, square, lag float64 }

// expected are the moments' expectations.
func (p process) expected() moments { return moments{0, p.at(0), p.at(1)} }

// errors are the moments' standard deviations. With gamma(l) the autocovariance at lag l, two terms
// of the averages which are l steps apart have the covariances gamma(l), 2 gamma(l)^2, and
// gamma(l)^2 + gamma(l-1) gamma(l+1) (Isserlis).
func (p process) errors(n int) moments {
	var sum moments
	for l := -min(n, len(p)) + 1; l < min(n, len(p)); l++ {
		gamma, weight := p.at(l), (1-math.Abs(float64(l))/float64(n))/float64(n)
		sum.mean += weight * gamma
		sum.square += weight * 2 * gamma * gamma
		sum.lag += weight * (gamma*gamma + p.at(l-1)*p.at(l+1))
	}
	return moments{math.Sqrt(sum.mean), math.Sqrt(sum.square), math.Sqrt(sum.lag)}
}

// gaussianRun is a sampler on a quadratic potential. Step is the effective one, h G.
type gaussianRun struct {
	dimensions, chains int
	k, noise           float64
	prior              langevin.Prior
	dataSize           int
	step, temperature  float64
}

const (
	gaussianBurnIn = 200
	gaussianSteps  = 600
)

// curvature is the potential's, the prior included.
func (g gaussianRun) curvature() float64 {
	if g.prior.Kind == langevin.GaussianPrior {
		return g.k + 1/(g.prior.Scale*g.prior.Scale)
	}
	return g.k
}

// outcome is the result of a run: the moments of each element of each chain, their preconditioners,
// and the configurational temperature.
type outcome struct {
	h              float64
	elements       []moments
	preconditioner []float64
	temperature    float64
}

// run samples with the row's sampler, or with a wrong one in its place.
func (g gaussianRun) run(t *testing.T, row row, sampler langevin.Sampler) outcome {
	t.Helper()
	rms := math.Sqrt(g.curvature()*g.temperature+g.noise*g.noise) / float64(g.dataSize)
	out := outcome{h: g.step / row.expected(rms)}
	session := experiment{
		sampler: sampler, field: trial.DiagonalGaussian{Smallest: g.k, Largest: g.k}, noise: g.noise, dimensions: g.dimensions, chains: g.chains, prior: g.prior,
		dataSize: g.dataSize, step: out.h, temperature: g.temperature,
		start: trial.Normal(func(int) float64 { return math.Sqrt(g.temperature / g.curvature()) }),
	}.load(t)
	trial.Advance(t, session, row.settled+gaussianBurnIn)
	out.elements = make([]moments, g.dimensions*g.chains)
	thermometer := diagnostics.NewThermometer(session.Program(), g.dataSize)
	before := g.states(t, session)
	for range gaussianSteps {
		at := int(session.Steps())
		trial.Advance(t, session, 1)
		thermometer.Observe(session, at, at+1)
		now := g.states(t, session)
		for i, x := range now {
			m := &out.elements[i]
			m.mean += before[i] / gaussianSteps
			m.square += before[i] * before[i] / gaussianSteps
			m.lag += before[i] * x / gaussianSteps
		}
		before = now
	}
	for chain := range g.chains {
		out.preconditioner = append(out.preconditioner, row.preconditioner(t, session, chain, g.dimensions)...)
	}
	out.temperature = thermometer.Temperature()
	return out
}

func (g gaussianRun) states(t *testing.T, s *graph.Session) []float64 {
	var states []float64
	for chain := range g.chains {
		states = append(states, trial.Values(t, s, trial.ParameterName, chain, g.dimensions)...)
	}
	return states
}

// theory is the process of an element with the step size h G.
type theory func(step float64) process

// zScores compare the outcome with a theory: sums over elements of
// (average - expectation) / standard error, divided by the root of their number.
func (o outcome) zScores(of theory) map[string]float64 {
	return o.compare(of, func(i int) moments { return o.elements[i] })
}

// foreseen returns the largest z score that a wrong theory is expected to have if the other one is
// right.
func (o outcome) foreseen(right, wrong theory) float64 {
	return largest(o.compare(wrong, func(i int) moments { return right(o.h * o.preconditioner[i]).expected() }))
}

func (o outcome) compare(of theory, element func(i int) moments) map[string]float64 {
	z := map[string]float64{}
	for i := range o.elements {
		p := of(o.h * o.preconditioner[i])
		got, want, sigma := element(i), p.expected(), p.errors(gaussianSteps)
		z["mean"] += (got.mean - want.mean) / sigma.mean
		z["variance"] += (got.square - want.square) / sigma.square
		z["lag 1"] += (got.lag - want.lag) / sigma.lag
	}
	for name := range z {
		z[name] /= math.Sqrt(float64(len(o.elements)))
	}
	return z
}

func largest(z map[string]float64) float64 {
	worst := 0.0
	for _, v := range z {
		if !(math.Abs(v) <= worst) {
			worst = math.Abs(v)
		}
	}
	return worst
}

// TestStationaryMoments compares with the exact moments of the discretised chain on Gaussians, and
// makes sure that the comparison distinguishes other chains.
func TestStationaryMoments(t *testing.T) {
	for _, row := range rows() {
		for _, g := range []gaussianRun{
			{dimensions: 1, chains: trial.ChainsOf(t, 150), k: 2, dataSize: 10, step: 0.15, temperature: 1},
			{dimensions: 2, chains: trial.ChainsOf(t, 80), k: 0.5, noise: 1.5, dataSize: 100, step: 0.4, temperature: 0.5},
			{dimensions: 1000, chains: 1, k: 3, noise: 0.7, dataSize: 1, step: 0.1, temperature: 2},
			{dimensions: 1000, chains: 1, k: 1, dataSize: 50, prior: langevin.Gaussian(0.5), step: 0.05, temperature: 1},
		} {
			if row.sampling == nil {
				continue
			}
			t.Run(fmt.Sprintf("%s/%d dimensions, %v", row.name, g.dimensions, g.prior), func(t *testing.T) {
				out := g.run(t, row, row.sampling)
				right := func(step float64) process { return row.chain(step, g.curvature(), g.temperature, g.noise) }
				for name, z := range out.zScores(right) {
					if !(math.Abs(z) < trial.ZLimit) {
						t.Errorf("%s: z = %.1f", name, z)
					}
				}
				want, variance := 0.0, 0.0
				for _, preconditioner := range out.preconditioner {
					// theta . grad U has this mean, since the gradient's noise is independent of
					// theta.
					p := right(out.h * preconditioner)
					want += g.curvature() * p.at(0) / float64(len(out.preconditioner))
					variance += square(g.curvature() * p.errors(gaussianSteps).square / float64(len(out.preconditioner)))
				}
				// The gradient's noise adds theta z, for which this is only a bound.
				noise := g.noise / (g.curvature() * math.Sqrt(float64(len(out.preconditioner)*gaussianSteps)))
				if z := (out.temperature - want) / math.Sqrt(variance+noise*noise); !(math.Abs(z) < trial.ZLimit) {
					t.Errorf("configurational temperature is %.4g, want %.4g: z = %.1f", out.temperature, want, z)
				}
				checkOtherTheories(t, row, g, out, right)
			})
		}
	}
}

// checkOtherTheories fails the test unless the outcome refutes theories that are slightly wrong.
func checkOtherTheories(t *testing.T, row row, g gaussianRun, out outcome, right theory) {
	t.Helper()
	k, temperature := g.curvature(), g.temperature
	for name, other := range map[string]theory{
		"half the noise":          func(step float64) process { return row.chain(step, k, temperature/2, g.noise/2) },
		"twice the drift":         func(step float64) process { return row.chain(step, 2*k, temperature, 2*g.noise) },
		"half the step":           func(step float64) process { return row.chain(step/2, k, temperature, g.noise) },
		"five percent more noise": func(step float64) process { return row.chain(step, k, 1.1*temperature, 1.05*g.noise) },
		"ten percent more drift":  func(step float64) process { return row.chain(step, 1.1*k, temperature, g.noise) },
	} {
		if trial.Underpowered(out.foreseen(right, other)) && !gross[name] {
			continue
		}
		if z := largest(out.zScores(other)); z < trial.ZLimit {
			t.Errorf("%s: not noticed: z = %.1f", name, z)
		}
	}
}

// gross are the wrong theories that are refuted on every device.
var gross = map[string]bool{"half the noise": true, "twice the drift": true}

// tampered is a sampler that gets wrong inputs.
type tampered struct {
	langevin.Sampler
	change func(*langevin.UpdateInputs)
}

func (s tampered) Update(b *graph.Builder, f langevin.UpdateInputs, parameter, gradient *graph.Node) *graph.Node {
	s.change(&f)
	return s.Sampler.Update(b, f, parameter, gradient)
}

// TestWrongSamplersAreNoticed runs samplers that are wrong against the right theory.
func TestWrongSamplersAreNoticed(t *testing.T) {
	g := gaussianRun{dimensions: 300, chains: 1, k: 1, prior: langevin.Gaussian(2), dataSize: 10, step: 0.1, temperature: 0.8}
	for _, row := range rows() {
		if row.sampling == nil {
			continue
		}
		for name, change := range map[string]func(*langevin.UpdateInputs){
			"no prior":                         func(f *langevin.UpdateInputs) { f.Prior = langevin.Flat() },
			"the prior's width for its square": func(f *langevin.UpdateInputs) { f.Prior.Scale = math.Sqrt(f.Prior.Scale) },
			"N of a smaller data set":          func(f *langevin.UpdateInputs) { f.DataSize = 9 },
			"temperatures for rates":           func(f *langevin.UpdateInputs) { f.Temperatures = f.Rates },
		} {
			out := g.run(t, row, tampered{row.sampling, change})
			z := out.zScores(func(step float64) process { return row.chain(step, g.curvature(), g.temperature, 0) })
			if largest(z) < trial.ZLimit {
				t.Errorf("%s: %s: not noticed: %v", row.name, name, z)
			}
		}
	}
}
