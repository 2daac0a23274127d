package langevin

import (
	"slices"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/graph/op"
	"github.com/pollen-ml/pollen/tensor"
	"github.com/pollen-ml/pollen/tensor/random"
)

// CCAdL is the covariance-controlled adaptive Langevin thermostat (Shang, Zhu, Leimkuhler and
// Storkey 2015, equations 17 to 19). It is SGNHT in which each element also has a friction b that
// balances the noise of its own gradient, next to the chi that the parameter's elements share. S is
// the variance of the gradient of U/N over minibatches, by element: the mean of (g - g')^2/2, where
// g' is the gradient of the step before. S is the plain mean over the steps until (t-1)/t reaches
// Alpha at step t, and a running mean with the memory Alpha from then on. A step is
//
//	B  v     <- v - h gU,    chi <- max(chi, 0)
//	D  chi   <- chi + k/2 (v.v/(d h T) - 1)
//	A  theta <- theta + v/2
//	O  v     <- c v + sqrt((1 - c^2) (a/f) h T) xi,  c = exp(-f),  f = chi + b,  b = h N^2 S/(2T)
//	A  theta <- theta + v/2
//	D  chi   <- chi + k/2 (v.v/(d h T) - 1)
//
// with v ~ N(0, h T), chi = a and S = 0 at the start, and D as in SGNHT. The paper makes Euler
// steps of the same equations, with the covariance of the gradients within one minibatch, which is
// unknown to a program that computes only their sum. Here the parts are in the order of BADODAB
// (Leimkuhler and Shang 2016), O is exact, so that v stays small where b is large, and the
// covariance is diagonal. The effective step size is h/f.
//
// It targets exp(-U/T). v.v/d, at the places where D reads it, is h T on average at any h. On a
// quadratic U of curvature c, element i is nearly at T (a + b')/(chi + b), where b' is the b of its
// true noise variance; in SGNHT it is at T (a + b')/chi. As far as b is right, all elements thus
// have the same temperature, whatever their noise, and the shared chi is what remains of a. chi is
// kept at 0 or above, because elements with little noise would otherwise accelerate indefinitely.
// Noise that comes in bursts, whose b is too large in between, then leaves a parameter cold.
//
// Three errors remain. S is too large by about c h S, because a gradient follows the step that the
// previous one made, and by (c h)^2 T/(2 h). The temperature is too low by the fraction f b/4.
// Noise that several elements share heats along their sum, which a diagonal cannot represent. At T
// = 0, b is 0 and chi stays constant: the rule is then BAOAB.
type CCAdL struct {
	Friction  float64 // a, above 0, at most 1; usually 0.1
	Alpha     float64 // memory of S, in [0, 1); usually 0.999
	Coupling  float64 // k, above 0: the change of chi in a step at twice the temperature; usually 0.001
	Couplings ByLayer // overrides Coupling for single layers or parameters
}

// Name implements Sampler.
func (CCAdL) Name() string { return "ccadl" }

// EffectiveStepSize implements EffectiveStepSizer.
func (s CCAdL) EffectiveStepSize(_ *graph.Session, _ int, _ string, n int, h float64) ([]float64, error) {
	return slices.Repeat([]float64{h / s.Friction}, n), nil
}

// Validate implements Sampler.
func (s CCAdL) Validate() error {
	switch err := checkBoundedFriction(s.Name(), s.Friction); {
	case err != nil:
		return err
	case !(s.Alpha >= 0 && s.Alpha < 1):
		return errors.Errorf("langevin: ccadl: Alpha must be at least 0 and below 1, got %v", s.Alpha)
	case !positive(s.Coupling):
		return errors.Errorf("langevin: ccadl: Coupling must be positive, got %v", s.Coupling)
	}
	return errors.WithMessage(s.Couplings.check(positive, "positive"), "langevin: ccadl: Couplings")
}

// Update implements Sampler.
func (s CCAdL) Update(b *graph.Builder, in UpdateInputs, parameter, gradient *graph.Node) *graph.Node {
	s.Coupling, s.Couplings = s.Couplings.of(in.Name, s.Coupling), ""
	return attachMomentum(b, s, in, parameter, gradient, 1)
}

func (CCAdL) kickFirst() bool { return true }

func (s CCAdL) byLayer() []ByLayer { return []ByLayer{s.Couplings} }

// The positions of the states among the update's inputs.
const (
	ccadlChi = momentumStates + iota
	ccadlVariance
	ccadlBefore
)

func (s CCAdL) states(n int) []momentumState {
	return []momentumState{sharedThermostat(s.Friction), {".noise variance", n, nil}, {".gradient before", n, nil}}
}

func (s CCAdL) lower(l *graph.Lowering, u momentumUpdate) (string, tensor.HostKernel, []float64) {
	n := l.Shapes[0].Elements()
	kick := op.UpdateHost(l, n, u, ccadlKick[float32], ccadlKick[float64])
	host := badodabHost(l, u, n, s.Coupling, kick, graph.Pick(l, ccadlDrift[float32], ccadlDrift[float64]))
	return "", host, []float64{s.Friction, s.Coupling, maxExcess, s.Alpha}
}

func (s CCAdL) calls(l *graph.Lowering, update tensor.Call) []tensor.Call {
	c := sharedCallsOf(l, update, len(s.states(1)))
	variance := tensor.In(update.Arguments[1+ccadlVariance].Buffer)
	return []tensor.Call{c.update, c.adapt(l, 0.5), c.drift(l, "ccadl_drift", variance), c.adapt(l, 0.5)}
}

// ccadlKick performs B and updates S.
func ccadlKick[T float32 | float64](u momentumUpdate, a *tensor.Args, lo, hi int) float64 {
	s := momentumTileOf[T](u, a, lo, hi)
	variances, befores := tensor.Slice[T](a, 1+ccadlVariance)[lo:hi], tensor.Slice[T](a, 1+ccadlBefore)[lo:hi]
	if chi := tensor.Slice[T](a, 1+ccadlChi); lo == 0 && sharedChi(chi) < 0 {
		chi[0], chi[1] = 0, 0
	}
	rate, step := s.rate, s.start.Step
	keep, half := T(1), T(0) // weights of S and of the new squares, which need a previous gradient
	if step > 0 {
		keep = min(T(u.rule.(CCAdL).Alpha), T(step-1)/T(step))
		half = (1 - keep) / 2
	}
	var gradients [random.BlockSize]T
	var z [random.BlockSize]float32
	squares := 0.0
	for from := 0; from < len(s.w); from += random.BlockSize {
		_, v, g := s.gradientBlock(from, &gradients, &z)
		g, variance, before := g[:len(v)], variances[from:][:len(v)], befores[from:][:len(v)]
		for i := range v {
			difference := g[i] - before[i]
			variance[i] = T(keep*variance[i]) + T(half*T(difference*difference))
			before[i] = g[i]
			v[i] = op.Descend(v[i], rate, g[i])
		}
		squares += virial(v, v)
	}
	tensor.Workspace[float64](a)[tileAt[T](a, lo)] = squares
	return s.virial
}

// ccadlDrift performs A, O and A. It returns the sum of the squares of the new velocities.
func ccadlDrift[T float32 | float64](u momentumUpdate, a *tensor.Args, lo, hi int) float64 {
	s := momentumTileOf[T](u, a, lo, hi)
	variances := tensor.Slice[T](a, 1+ccadlVariance)[lo:hi]
	chi, gain, friction := sharedChi(tensor.Slice[T](a, 1+ccadlChi)), s.balance(u.dataSize), u.rule.(CCAdL).Friction
	var z [random.BlockSize]float32
	squares := 0.0
	for from := 0; from < len(s.w); from += random.BlockSize {
		to := min(from+random.BlockSize, len(s.w))
		s.draw(from, &z)
		w, v, variance := s.w[from:to], s.v[from:to], variances[from:to]
		v, variance = v[:len(w)], variance[:len(w)]
		for i := range w {
			old := v[i]
			c, strength := elementRelaxation(chi+float64(gain*float64(variance[i])), friction)
			v[i] = T(T(c)*old) + T(s.scale(strength)*T(z[i]))
			w[i] += T(0.5 * (old + v[i]))
		}
		squares += virial(v, v)
	}
	return squares
}

// balance returns the friction that balances noise of variance 1 in the gradient of U/N.
func (s *momentumTile[T]) balance(dataSize int) float64 {
	if s.temperature == 0 {
		return 0
	}
	return float64(s.rate) * float64(dataSize) / (2 * s.temperature)
}
