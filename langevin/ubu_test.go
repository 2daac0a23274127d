package langevin_test

import (
	"math"
	"testing"

	"github.com/pollen-ml/pollen/langevin"
)

// unforced solves U exactly for a time t: dtheta = v dt, dv = -a v dt + sqrt(2 a h T) dW. keep is
// the factor of v, and move the factor of v in theta's move. xx and vv are the variances of the
// noises of theta and v, and xv their covariance, all over h T.
func unforced(a, t float64) (keep, move, xx, xv, vv float64) {
	c := math.Exp(-a * t)
	return c, (1 - c) / a, (2*a*t - 3 + 4*c - c*c) / (a * a), (1 - c) * (1 - c) / a, 1 - c*c
}

// unforced is the chain with U for a time t.
func (c linear) unforced(a, t, h, temperature float64) linear {
	keep, move, xx, xv, vv := unforced(a, t)
	m, noise := still(c.a).m, still(c.a).q
	d, _ := c.a.Dims()
	for i := range d {
		m.Set(i, d+i, move)
		m.Set(d+i, d+i, keep)
		noise.Set(i, i, h*temperature*xx)
		noise.Set(i, d+i, h*temperature*xv)
		noise.Set(d+i, i, h*temperature*xv)
		noise.Set(d+i, d+i, h*temperature*vv)
	}
	next := c.then(m, 0)
	next.q.Add(next.q, noise)
	return next
}

func ubuRule(s langevin.UBU) rule {
	keep, move, xx, xv, vv := unforced(s.Friction, 1)
	return func(e element) float64 {
		v := e.begun() - e.h*e.n*e.g
		size := math.Sqrt(e.h * e.temperature)
		*e.memory = keep*v + math.Sqrt(vv)*size*e.xi
		theta := e.theta + move*v + xv/math.Sqrt(vv)*size*e.xi
		if e.step > 0 {
			theta += math.Sqrt(xx-xv*xv/vv) * size * e.start
		}
		return theta
	}
}

func wrongUBU(s langevin.UBU) map[string]rule {
	right := ubuRule(s)
	scaled := func(noise, own float64) rule {
		return func(e element) float64 {
			e.xi *= math.Sqrt(noise)
			if e.step > 0 {
				e.start *= math.Sqrt(own)
			}
			return right(e)
		}
	}
	return map[string]rule{
		"twice the variance of the noise":      scaled(2, 1),
		"twice the variance of theta's own":    scaled(1, 2),
		"no noise of theta's own":              scaled(1, 0),
		"the friction of a Taylor expansion":   ubuRule(langevin.UBU{Friction: -math.Log(1 - s.Friction)}),
		"no N in the drift":                    unscaled(right),
		"a start at rest":                      resting(right),
		"BAOAB":                                baoabRule(langevin.BAOAB(s)),
		"one noise for theta and its velocity": func(e element) float64 { e.start = e.xi; return right(e) },
	}
}

// TestUBUMoments: two halves of U are one, so that the chain of the paper's order has a covariance
// that follows from this one's; and UBU's comment has the variances on a quadratic U, and what the
// noise of minibatches adds.
func TestUBUMoments(t *testing.T) {
	const k, temperature = 0.8, 0.7
	near := func(what string, got, want, tolerance float64) {
		t.Helper()
		if !(math.Abs(got-want) <= tolerance*math.Abs(want)) {
			t.Errorf("%s is %v, want %v", what, got, want)
		}
	}
	for _, friction := range []float64{1e-3, 0.4, 3} {
		for _, h := range []float64{0.01, 0.5, 3} {
			q, s := h*k, langevin.UBU{Friction: friction}
			p := chainOf(s, curvature(k), h, temperature, 0).covariance()
			halves := still(curvature(k)).kick(1, h, 0, 0).unforced(friction, 0.5, h, temperature).unforced(friction, 0.5, h, temperature).covariance()
			ordered := still(curvature(k)).unforced(friction, 0.5, h, temperature).kick(1, h, 0, 0).unforced(friction, 0.5, h, temperature).covariance()
			near("the variance with two halves", halves.At(0, 0), p.At(0, 0), 1e-6)
			if friction == 1e-3 {
				near("the variance", p.At(0, 0), temperature/k*(1-q/6)/(1-q/4), 1e-3)
				near("the variance half a U later", ordered.At(0, 0), temperature/k*(1-q/6), 1e-3)
				const gradient = 1.3
				heated := chainOf(s, curvature(k), h, temperature, gradient).covariance()
				baoab := func(noise float64) float64 {
					return chainOf(langevin.BAOAB(s), curvature(k), h, temperature, noise).covariance().At(0, 0)
				}
				near("the heating", (heated.At(0, 0)-p.At(0, 0))*k/temperature, (baoab(gradient)-baoab(0))*k/temperature, 1e-3)
			}
			if before := p.At(0, 0) * k / temperature; h == 0.01 && !(math.Abs(before-1) < q) {
				t.Errorf("friction %v: the variance is %v times the target's at a small step", friction, before)
			}
		}
	}
	for _, friction := range []float64{0, -1, math.Inf(1), math.NaN()} {
		if err := (langevin.UBU{Friction: friction}).Validate(); err == nil {
			t.Errorf("Friction %v is accepted", friction)
		}
	}
}

// TestUBUSeries: for small frictions the series of the position's noise is its formula, which has
// lost only a few of its digits there.
func TestUBUSeries(t *testing.T) {
	for _, a := range []float64{0.02, 0.05, 0.08, 0.1} {
		_, got := langevin.UBUCoefficients(a)
		if want := (2*a - 4*math.Tanh(a/2)) / (a * a); !(math.Abs(got/want-1) < 3e-11) {
			t.Errorf("friction %v: %v, want %v", a, got, want)
		}
	}
}
