package langevin_test

import (
	"math"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/pollen-ml/pollen/internal/testenv"
	"github.com/pollen-ml/pollen/langevin"
	"github.com/pollen-ml/pollen/langevin/trial"
)

// linear is the chain of a sampler with momentum on the quadratic potential theta.A theta/2: for x,
// d elements theta followed by their velocities v, x' = m x + noise of covariance q.
type linear struct {
	a    *mat.Dense
	m, q *mat.Dense
}

// still returns the chain whose step has no parts yet. Parts are added to it in the order of the
// step.
func still(a *mat.Dense) linear {
	d, _ := a.Dims()
	c := linear{a, mat.NewDense(2*d, 2*d, nil), mat.NewDense(2*d, 2*d, nil)}
	for i := range 2 * d {
		c.m.Set(i, i, 1)
	}
	return c
}

// curvature is the potential k theta^2/2.
func curvature(k float64) *mat.Dense { return mat.NewDense(1, 1, []float64{k}) }

// then returns the chain with one more part: x' = m x + noise of the given variance on the
// velocities.
func (c linear) then(m *mat.Dense, variance float64) linear {
	next := linear{c.a, new(mat.Dense), new(mat.Dense)}
	next.m.Mul(m, c.m)
	next.q.Mul(m, c.q)
	next.q.Mul(next.q, m.T())
	n, _ := m.Dims()
	for i := n / 2; i < n; i++ {
		next.q.Set(i, i, next.q.At(i, i)+variance)
	}
	return next
}

// kick is v' = keep v - h (A theta + noise) + more noise.
func (c linear) kick(keep, h, noise, variance float64) linear {
	part := still(c.a).m
	d, _ := c.a.Dims()
	for i := range d {
		part.Set(d+i, d+i, keep)
		for j := range d {
			part.Set(d+i, j, -h*c.a.At(i, j))
		}
	}
	return c.then(part, h*h*noise*noise+variance)
}

// relax is v' = keep v + noise.
func (c linear) relax(keep, variance float64) linear { return c.kick(keep, 0, 0, variance) }

// drift is theta' = theta + share v.
func (c linear) drift(share float64) linear {
	part := still(c.a).m
	d, _ := c.a.Dims()
	for i := range d {
		part.Set(i, d+i, share)
	}
	return c.then(part, 0)
}

// covariance is the solution of P = M P M' + Q, the sum of M^i Q M'^i, by doubling the number of
// its terms.
func (c linear) covariance() *mat.Dense {
	p, m := mat.DenseCopyOf(c.q), mat.DenseCopyOf(c.m)
	for range 40 {
		var more, power mat.Dense
		more.Mul(m, p)
		more.Mul(&more, m.T())
		p.Add(p, &more)
		power.Mul(m, m)
		m = &power
	}
	return p
}

// process is the first element's.
func (c linear) process() process {
	var gammas process
	gamma := c.covariance()
	for first := gamma.At(0, 0); mat.Norm(gamma, 2) > 1e-9*first && len(gammas) < 5000 || len(gammas) < 2; {
		gammas = append(gammas, gamma.At(0, 0))
		next := new(mat.Dense)
		next.Mul(c.m, gamma)
		gamma = next
	}
	return gammas
}

// processOf is the process of a sampler's chain on one element, computed once for each choice of
// arguments.
func processOf(sampler langevin.Sampler) func(step, k, temperature, noise float64) process {
	known := map[[4]float64]process{}
	return func(step, k, temperature, noise float64) process {
		key := [4]float64{step, k, temperature, noise}
		if known[key] == nil {
			known[key] = chainOf(sampler, curvature(k), step, temperature, noise).process()
		}
		return known[key]
	}
}

// sgnhtChain is SGNHT with very many elements, whose chi does not fluctuate.
func sgnhtChain(s langevin.SGNHT, a *mat.Dense, h, temperature, noise float64) (c linear, chi float64) {
	chains, chi := sgnhtChains(s, a, h, temperature, noise)
	return chains[0], chi
}

// sgnhtChains is sgnhtChain for equal numbers of elements of several noises, which share one chi.
func sgnhtChains(s langevin.SGNHT, a *mat.Dense, h, temperature float64, noises ...float64) (chains []linear, chi float64) {
	lo, hi := 0.0, 2.0
	for range 60 {
		chi = (lo + hi) / 2
		d, _ := a.Dims()
		chains = nil
		squares := 0.0 // of the velocities where chi sees them, on average
		for _, noise := range noises {
			var c linear
			var square float64
			if s.Splitting == langevin.SplittingEuler {
				c = still(a).kick(1-chi, h, noise, 2*s.Friction*h*temperature).drift(1)
				square = c.covariance().At(d, d)
			} else {
				keep := math.Exp(-chi)
				variance := (1 - keep*keep) * s.Friction / chi * h * temperature
				c = still(a).kick(1, h, noise, 0).drift(0.5).relax(keep, variance).drift(0.5)
				square = (c.covariance().At(d, d) + still(a).drift(0.5).relax(keep, variance).drift(0.5).kick(1, h, noise, 0).covariance().At(d, d)) / 2
			}
			chains = append(chains, c)
			squares += square / float64(len(noises))
		}
		if squares > h*temperature {
			lo = chi
		} else {
			hi = chi
		}
	}
	return chains, chi
}

// TestMomentumTheory compares the covariances of the discretised chains with the formulas of the
// samplers' comments.
func TestMomentumTheory(t *testing.T) {
	const h, k, temperature, noise = 0.2, 1.5, 0.7, 0.8
	check := func(name string, got, want, tolerance float64) {
		t.Helper()
		if !(math.Abs(got/want-1) <= tolerance) {
			t.Errorf("%s is %v, want %v", name, got, want)
		}
	}
	const exact = 1e-12
	for _, a := range []float64{0.01, 0.3, 1} {
		s := langevin.SGHMC{Friction: a}
		variance := temperature / k * (1 - a/2) / (1 - a/2 - h*k/4)
		p := chainOf(s, curvature(k), h, temperature, 0).covariance()
		check("SGHMC's variance", p.At(0, 0), variance, exact)
		check("SGHMC's kinetic temperature", (1-a/2)*p.At(1, 1)/h, k*variance, exact)
		heated := chainOf(s, curvature(k), h, temperature, noise).covariance()
		check("SGHMC's heating", heated.At(0, 0), variance*(1+h*noise*noise/(2*a*temperature)), exact)
		s.NoiseEstimate = h * noise * noise / (2 * temperature)
		if s.Validate() == nil {
			check("SGHMC's estimate", chainOf(s, curvature(k), h, temperature, noise).covariance().At(0, 0), variance, exact)
		}
		p = chainOf(langevin.BAOAB{Friction: a}, curvature(k), h, temperature, 0).covariance()
		check("BAOAB's variance", p.At(0, 0), temperature/k, exact)
		check("BAOAB's kinetic temperature", p.At(1, 1)/h, temperature, exact)
	}
	heated := chainOf(langevin.BAOAB{Friction: 0.02}, curvature(k), h/50, temperature, noise).covariance()
	check("BAOAB's heating", heated.At(0, 0), temperature/k*(1+h/50*noise*noise/(2*temperature*0.02)), 1e-3)

	s := langevin.SGNHT{Friction: 0.1, Splitting: langevin.SplittingEuler, Coupling: 1e-3}
	for _, h := range []float64{0.02, 0.2} {
		c, chi := sgnhtChain(s, curvature(k), h, temperature, noise)
		check("Euler's temperature", k*c.covariance().At(0, 0), temperature*(1-chi/2), 1e-9)
	}
	s.Splitting = langevin.SplittingBADODAB
	for _, noise := range []float64{0, noise} {
		c, chi := sgnhtChain(s, curvature(k), 0.02, temperature, noise)
		if noise == 0 {
			check("BADODAB's variance without noise", c.covariance().At(0, 0), temperature/k, exact)
			continue
		}
		check("BADODAB's chi", chi, s.Friction+0.02*noise*noise/(2*temperature), 0.01)
		check("BADODAB's bias", k*c.covariance().At(0, 0)/temperature-1, -chi*0.02*noise*noise/8/temperature, 0.1)
	}
}

// TestMomentumShapes compares averages on correlated and ill-conditioned Gaussians with the
// discretised chain's, and on a skewed target with the target's own.
func TestMomentumShapes(t *testing.T) {
	testenv.NeedsAll(t, "long chains")
	for _, row := range rows() {
		if row.sampling == nil || row.euler {
			continue
		}
		// An element that moves by h G is one that moves by 1 in units of sqrt(h G).
		covariances := func(matrix ...float64) func(steps []float64) []float64 {
			return func(steps []float64) []float64 {
				units := mat.NewDense(2, 2, nil)
				units.Outer(1, mat.NewVecDense(2, roots(steps)), mat.NewVecDense(2, roots(steps)))
				scaled := mat.NewDense(2, 2, nil)
				scaled.MulElem(units, mat.NewDense(2, 2, matrix))
				p := chainOf(row.sampling, scaled, 1, correlated().temperature, 0).covariance()
				return []float64{units.At(0, 0) * p.At(0, 0), units.At(0, 1) * p.At(0, 1), units.At(1, 1) * p.At(1, 1)}
			}
		}
		variances := func(temperature float64) func(steps []float64) []float64 {
			return func(steps []float64) []float64 {
				want := make([]float64, trial.Classes)
				for i := range want {
					want[i] = row.chain(steps[i], illConditioned().field.(trial.DiagonalGaussian).Curvature(i), temperature, 0).at(0)
				}
				return want
			}
		}
		valley := correlated()
		valley.expectation = covariances(2, 1.2, 1.2, 1)
		valley.wrong = map[string]func([]float64) []float64{
			"the other diagonal":  covariances(2, -1.2, -1.2, 1),
			"a little less of it": covariances(2, 1.2*0.97, 1.2*0.97, 1),
		}
		bowls := illConditioned()
		bowls.expectation = variances(1)
		bowls.wrong = map[string]func([]float64) []float64{"half the variance": variances(0.5), "ten percent more": variances(1.1)}
		hump := skewed(t)
		want := momentsOf(hump.field.(trial.LogGamma), hump.temperature)
		hump.step, hump.expectation = 0.01, func([]float64) []float64 { return want }
		hump.temperature /= row.chain(1e-3, 1, 1, 0).at(0) // SGHMC runs cold here: there is no noise as its NoiseEstimate says
		delete(hump.wrong, "the continuous limit")
		for _, s := range []shape{valley, bowls, hump} {
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

func roots(values []float64) (all []float64) {
	for _, v := range values {
		all = append(all, math.Sqrt(v))
	}
	return all
}

// TestOverdampedSteps: the samplers with momentum move as SGLD does at the step sizes that their
// comments name.
func TestOverdampedSteps(t *testing.T) {
	const h, k = 1e-4, 0.01
	for name, c := range map[string]struct {
		process process
		step    float64
	}{
		"SGHMC":                {chainOf(langevin.SGHMC{Friction: 0.3}, curvature(k), h, 1, 0).process(), h / 0.3},
		"BAOAB":                {chainOf(langevin.BAOAB{Friction: 0.3}, curvature(k), h, 1, 0).process(), h / 2 / math.Tanh(0.15)},
		"BAOAB, much friction": {chainOf(langevin.BAOAB{Friction: 20}, curvature(k), h, 1, 0).process(), h / 2},
	} {
		const lag = 4000
		rate := -math.Log(c.process.at(lag)/c.process.at(lag/2)) / (lag / 2)
		if math.Abs(rate/(c.step*k)-1) > 1e-3 {
			t.Errorf("%s: correlations decay by %.4g a step, want %.4g", name, rate, c.step*k)
		}
	}
}
