package mcmc_test

import (
	"fmt"
	"maps"
	"math"
	"testing"

	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/langevin/trial"
	"github.com/pollen-ml/pollen/mcmc"
	"github.com/pollen-ml/pollen/tensor/random"
)

// point is a point with the potential and its slope there.
type point struct {
	x, gradient []float64
	u           float64
}

func pointAt(f trial.Field, x []float64) point {
	p := point{x: x, gradient: make([]float64, len(x))}
	p.u = f.At(x, p.gradient)
	return p
}

// attempt is one proposal, from one point to another.
type attempt struct {
	from, to    point
	xi, end     []float64 // the normals it was made of, the momenta it ended with
	step        float64
	temperature float64
	masses      []float64
}

// exactRow is a proposal with its formulas in float64.
type exactRow struct {
	name          string
	proposal      mcmc.Proposal
	leapfrogSteps int
	masses        []float64
	jitter        float64
	// propose fills in to and end.
	propose func(f trial.Field, a *attempt)
	// ratio is the logarithm of the acceptance ratio; wrong ones differ in one term, which moments
	// must show.
	ratio func(a attempt) float64
	wrong map[string]func(a attempt) float64
	// step is a step size at which proposals are now and then rejected, in one dimension, at a
	// curvature and a temperature of 1.
	step float64
	// scaled is the factor of step at others, and power is the power of 1/d by which it shrinks in
	// d dimensions.
	scaled func(curvature, temperature float64) float64
	power  float64
}

// fall is -(U(theta') - U(theta))/T.
func (a attempt) fall() float64 { return -(a.to.u - a.from.u) / a.temperature }

// logDensity is MALA's log q(to|from) up to a constant.
func (a attempt) logDensity(from, to point) float64 {
	sum := 0.0
	for i := range from.x {
		d := to.x[i] - from.x[i] + a.step*from.gradient[i]
		sum += d * d
	}
	return -sum / (4 * a.step * a.temperature)
}

// kinetic is p' M^-1 p / 2.
func (a attempt) kinetic(p []float64) float64 {
	sum := 0.0
	for i, v := range p {
		sum += v * v / a.masses[i] / 2
	}
	return sum
}

// start is the momenta that a trajectory begins with.
func (a attempt) start() []float64 {
	p := make([]float64, len(a.xi))
	for i, z := range a.xi {
		p[i] = math.Sqrt(a.temperature*a.masses[i]) * z
	}
	return p
}

func exactRows() []exactRow {
	return []exactRow{
		{
			name: "random walk", proposal: mcmc.RandomWalk{}, leapfrogSteps: 1, step: 2, power: 1. / 2,
			scaled: func(k, temperature float64) float64 { return math.Sqrt(temperature / k) },
			propose: func(f trial.Field, a *attempt) {
				x := append([]float64{}, a.from.x...)
				for i := range x {
					x[i] += a.step * a.xi[i]
				}
				a.to = pointAt(f, x)
			},
			ratio: attempt.fall,
			wrong: map[string]func(a attempt) float64{
				"T = 1":     func(a attempt) float64 { return a.fall() * a.temperature },
				"half of U": func(a attempt) float64 { return a.fall() / 2 },
				"uphill":    func(a attempt) float64 { return -a.fall() },
			},
		},
		{
			name: "MALA", proposal: mcmc.MALA{}, leapfrogSteps: 1, step: 1, power: 1. / 3,
			scaled: func(k, _ float64) float64 { return 1 / k },
			propose: func(f trial.Field, a *attempt) {
				x := append([]float64{}, a.from.x...)
				for i := range x {
					x[i] += -a.step*a.from.gradient[i] + math.Sqrt(2*a.step*a.temperature)*a.xi[i]
				}
				a.to = pointAt(f, x)
			},
			ratio: func(a attempt) float64 { return a.fall() + a.logDensity(a.to, a.from) - a.logDensity(a.from, a.to) },
			wrong: map[string]func(a attempt) float64{
				"no densities":    attempt.fall,
				"densities' sign": func(a attempt) float64 { return a.fall() - a.logDensity(a.to, a.from) + a.logDensity(a.from, a.to) },
				"half of densities": func(a attempt) float64 {
					return a.fall() + (a.logDensity(a.to, a.from)-a.logDensity(a.from, a.to))/2
				},
				"T = 1 in U": func(a attempt) float64 {
					return a.fall()*a.temperature + a.logDensity(a.to, a.from) - a.logDensity(a.from, a.to)
				},
				"always": func(attempt) float64 { return 0 },
			},
		},
		leapfrogRow("HMC", 4, nil, 0, 1.1),
		leapfrogRow("HMC with masses", 3, []float64{0.4}, 0.3, 0.8),
	}
}

func leapfrogRow(name string, leapfrogSteps int, masses []float64, jitter, step float64) exactRow {
	proposal := mcmc.HMC{LeapfrogSteps: leapfrogSteps, Jitter: jitter}
	return exactRow{
		name: name, proposal: proposal, leapfrogSteps: leapfrogSteps, masses: masses, jitter: jitter, step: step, power: 1. / 4,
		scaled: func(k, _ float64) float64 { return 1 / math.Sqrt(k) },
		propose: func(f trial.Field, a *attempt) {
			q, p := a.from, a.start()
			for range leapfrogSteps {
				x := append([]float64{}, q.x...)
				for i := range x {
					p[i] -= a.step / 2 * q.gradient[i]
					x[i] += a.step * p[i] / a.masses[i]
				}
				q = pointAt(f, x)
				for i := range x {
					p[i] -= a.step / 2 * q.gradient[i]
				}
			}
			a.to, a.end = q, p
		},
		ratio: func(a attempt) float64 { return a.fall() - (a.kinetic(a.end)-a.kinetic(a.start()))/a.temperature },
		wrong: map[string]func(a attempt) float64{
			"no momenta":     attempt.fall,
			"momenta's sign": func(a attempt) float64 { return a.fall() + (a.kinetic(a.end)-a.kinetic(a.start()))/a.temperature },
			"last half kick missing": func(a attempt) float64 {
				p := append([]float64{}, a.end...)
				for i := range p {
					p[i] += a.step / 2 * a.to.gradient[i]
				}
				a.end = p
				return a.fall() - (a.kinetic(a.end)-a.kinetic(a.start()))/a.temperature
			},
			"always": func(attempt) float64 { return 0 },
		},
	}
}

// stepFor is the row's step size for a target in d dimensions.
func (r exactRow) stepFor(line equilibrium, dimensions int) float64 {
	return r.step * r.scaled(line.curvature, line.temperature) * math.Pow(float64(dimensions), -r.power)
}

// proposalFor is the row's proposal for a parameter of n elements.
func (r exactRow) proposalFor(n int) mcmc.Proposal {
	if hmc, ok := r.proposal.(mcmc.HMC); ok && r.masses != nil {
		hmc.Masses = map[string][]float64{trial.ParameterName: r.massesFor(n)}
		return hmc
	}
	return r.proposal
}

// massesFor repeats the row's masses, each time by a little larger.
func (r exactRow) massesFor(n int) []float64 {
	masses := make([]float64, n)
	for i := range masses {
		masses[i] = 1
		if r.masses != nil {
			masses[i] = r.masses[i%len(r.masses)] * (1 + float64(i)/float64(n))
		}
	}
	return masses
}

// transcribed makes a chain's proposals from the same random numbers as the graph.
type transcribed struct {
	row         exactRow
	field       trial.Field
	ratio       func(a attempt) float64
	temperature float64
	step        float64
	chain       uint32
	stream      uint16 // of the test; the parameter's follows
	now         point
	masses      []float64
	made        int
	probability float64
	refused     int
}

func (m *transcribed) propose() {
	address := m.address()
	address.Stream++
	a := attempt{from: m.now, xi: make([]float64, len(m.now.x)), temperature: m.temperature, masses: m.masses}
	a.step = m.step * (1 + m.row.jitter*(2*uniformAt(m.address(), 1)-1))
	random.Normals(a.xi, 0, address)
	m.row.propose(m.field, &a)
	m.made++
	m.probability = math.Min(1, math.Exp(m.ratio(a)))
	if uniformAt(m.address(), 0) < m.probability {
		m.now = a.to
	} else {
		m.refused++
	}
}

// address is where the test's random numbers lie, at the present step.
func (m *transcribed) address() random.Address {
	return random.Address{Seed: trial.RunSeed, Chain: m.chain, Step: uint64(m.made * m.row.leapfrogSteps), Stream: m.stream}
}

// uniformAt is element i of a stream of uniform numbers with 53 bits.
func uniformAt(address random.Address, i int) float64 {
	var words [2]uint32
	random.Bits(words[:], 2*i, address)
	return float64(uint64(words[0])<<21|uint64(words[1])>>11) / (1 << 53)
}

// TestMetropolisFormula: proposals, their probabilities and what becomes of them are what the
// formulae do, for the same random numbers.
func TestMetropolisFormula(t *testing.T) {
	const proposals, chain = 25, 1
	for _, row := range exactRows() {
		made, refused := 0, 0
		for _, dimensions := range []int{1, 5, 301, 4099} {
			t.Run(fmt.Sprintf("%s/%d", row.name, dimensions), func(t *testing.T) {
				line := logGammaLine(1.5, 0.7)
				e := exactRun{
					field: line.field, dimensions: dimensions, chains: 2, temperature: line.temperature, start: line.start,
					sampler: mcmc.Metropolis{Proposal: row.proposalFor(dimensions), StepSize: row.stepFor(line, dimensions)},
				}
				b, chains, stream := e.build(t)
				session := trial.Load(t, b, graph.LoadOptions{Seed: trial.RunSeed, Chains: e.chains}, 0)
				traces := drawn(t, session, chains, proposals, 1)
				want := transcribed{
					row: row, field: e.field, ratio: row.ratio, temperature: e.temperature, step: e.sampler.(mcmc.Metropolis).StepSize, chain: chain,
					stream: stream, masses: row.massesFor(dimensions),
				}
				want.now = line.first(chain, dimensions)
				probabilities, potentials := traceOf(t, traces, mcmc.TraceAcceptance, 0), traceOf(t, traces, mcmc.TracePotential, 0)
				last := traceOf(t, traces, "w", dimensions-1)
				for i := range proposals {
					want.propose()
					if got := probabilities[chain][i]; math.Abs(got-want.probability) > 1e-9 {
						t.Fatalf("proposal %d: accepted with probability %v, want %v", i, got, want.probability)
					}
					if got := last[chain][i]; math.Abs(got-want.now.x[dimensions-1]) > 1e-10 || math.Abs(potentials[chain][i]/want.now.u-1) > 1e-11 {
						t.Fatalf("draw %d: %v with potential %v, want %v and %v", i, got, potentials[chain][i], want.now.x[dimensions-1], want.now.u)
					}
				}
				made += want.made
				refused += want.refused
			})
		}
		if refused < 5 || refused > made-5 {
			t.Errorf("%s: %d proposals of %d were refused: the test does not see both cases", row.name, refused, made)
		}
	}
}

// first is where a chain starts.
func (e equilibrium) first(chain uint32, dimensions int) point {
	x := make([]float64, dimensions)
	e.start(trial.RunSeed, chain, 1, nil, x)
	return pointAt(e.field, x)
}

// lines are targets of one dimension.
func lines() map[string]equilibrium {
	return map[string]equilibrium{
		"normal":         normalLine(1, 1),
		"normal, cold":   normalLine(2, 0.3),
		"log-gamma":      logGammaLine(1.5, 1),
		"log-gamma, hot": logGammaLine(3, 2),
	}
}

// TestMetropolisMoments: in one dimension, at step sizes at which many proposals are rejected,
// draws have the target's moments.
func TestMetropolisMoments(t *testing.T) {
	chains, draws := trial.ChainsOf(t, 48), trial.StepsOf(t, 400)
	for _, row := range exactRows() {
		for name, line := range lines() {
			t.Run(row.name+"/"+name, func(t *testing.T) {
				traces := exactRun{
					field: line.field, dimensions: 1, chains: chains, temperature: line.temperature, start: line.start,
					sampler: mcmc.Metropolis{Proposal: row.proposalFor(1), StepSize: row.stepFor(line, 1)},
				}.draw(t, draws, 1)
				rate := meanOf(traceOf(t, traces, mcmc.TraceAcceptance, 0))
				if moment, z := line.worst(traceOf(t, traces, "w", 0)); z > trial.ZLimit || rate > 0.95 || rate < 0.2 {
					t.Errorf("%s is off by %.1f standard errors; %.2f of the proposals were accepted", moment, z, rate)
				}
			})
		}
	}
}

func meanOf(chains [][]float64) float64 {
	sum, n := 0.0, 0
	for _, chain := range chains {
		for _, v := range chain {
			sum += v
			n++
		}
	}
	return sum / float64(n)
}

// TestMetropolisWrongRatios: the same moments show when one term of the ratio is wrong.
func TestMetropolisWrongRatios(t *testing.T) {
	const chains, draws = 48, 400
	for _, row := range exactRows() {
		ratios := map[string]func(a attempt) float64{"": row.ratio}
		maps.Copy(ratios, row.wrong)
		for name, ratio := range ratios {
			most, where := 0.0, ""
			right := name == ""
			for target, line := range lines() {
				moment, z := line.worst(transcribedChains(row, line, ratio, chains, draws))
				if z > most {
					most, where = z, target+"'s "+moment
				}
				if !right && most > 2*trial.ZLimit {
					break
				}
			}
			if right && most > trial.ZLimit {
				t.Errorf("%s as transcribed: %s is off by %.1f standard errors", row.name, where, most)
			} else if !right && most < 2*trial.ZLimit {
				t.Errorf("%s with %s: only %.1f standard errors off, in %s: the moments do not notice", row.name, name, most, where)
			}
		}
	}
}

func transcribedChains(row exactRow, line equilibrium, ratio func(a attempt) float64, chains, draws int) [][]float64 {
	all := make([][]float64, chains)
	for chain := range all {
		m := transcribed{
			row: row, field: line.field, ratio: ratio, temperature: line.temperature, step: row.stepFor(line, 1), chain: uint32(chain), stream: 3,
			masses: row.massesFor(1),
		}
		m.now = line.first(uint32(chain), 1)
		for range draws {
			m.propose()
			all[chain] = append(all[chain], m.now.x[0])
		}
	}
	return all
}
