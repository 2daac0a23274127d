package langevin

import (
	"slices"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/graph/op"
	"github.com/pollen-ml/pollen/tensor"
	"github.com/pollen-ml/pollen/tensor/kernel"
	"github.com/pollen-ml/pollen/tensor/random"
)

// Splitting is the order in which SGNHT does the parts of a step.
type Splitting string

// The splittings.
const (
	// SplittingEuler is the paper's order: velocities, then parameters, then the thermostat.
	SplittingEuler Splitting = "euler"
	// SplittingBADODAB is symmetric, with exact friction and noise (Leimkuhler and Shang 2016).
	SplittingBADODAB Splitting = "badodab"
)

// SGNHT is the stochastic gradient Nose-Hoover thermostat (Ding, Fang, Babbush, Chen, Skeel and
// Neven 2014, algorithm 1). Each parameter has a friction chi, which adapts until v.v/d, the mean
// over the parameter's d elements, is h T: the noise of minibatches then does not heat. At the
// start v ~ N(0, h T) and chi = a. SplittingEuler is
//
//	v     <- (1 - chi) v - h gU + sqrt(2 a h T) xi
//	theta <- theta + v
//	chi   <- chi + k (v.v/(d h T) - 1)
//
// and SplittingBADODAB, in which the two halves of B are one kick with one gradient, is
//
//	B  v     <- v - h gU
//	D  chi   <- chi + k/2 (v.v/(d h T) - 1)
//	A  theta <- theta + v/2
//	O  v     <- c v + sqrt((1 - c^2) (a/chi) h T) xi,    c = exp(-chi)
//	A  theta <- theta + v/2
//	D  chi   <- chi + k/2 (v.v/(d h T) - 1)
//
// In the paper's notation, with the time step e: h = e^2, v = e p, chi = e xi, a = e A, and its k
// is h T. With N = 60 000 that is some 1e-7, so that chi does not move within a run. Here k is
// free: chi follows the noise within some chi/k steps, and has the standard deviation sqrt(k/d) in
// equilibrium. One D raises chi by at most 20 k (10 k in BADODAB's halves). Without this limit the
// first gradients, which are not noise, would raise chi so far that it needs the whole run to come
// down; v.v/(d h T), whose standard deviation is sqrt(2/d), does not come near 21 in equilibrium.
// The effective step size is h/chi, where chi is about a + h Var(gU)/(2T).
//
// It targets exp(-U/T). v.v/d, at the places where D reads it, is h T on average at any h. The
// kinetic temperature shows this; with SplittingBADODAB it is the mean of v.v/(h d) before B and
// after it. On a quadratic U the configurational temperature is about T (1 - chi/2) with
// SplittingEuler, whatever h is, and T - chi h Var(gU)/8 with SplittingBADODAB. These are means
// over a parameter: element i, whose noise differs, is at T (a + h Var(gU_i)/(2T))/chi unless
// PerElement is set. SplittingEuler is unstable where chi exceeds 2. At T = 0 chi stays constant:
// SplittingEuler is then optimizers.Momentum with the rate h N and the decay 1 - chi, and
// SplittingBADODAB is BAOAB.
type SGNHT struct {
	Friction   float64   // a, above 0, at most 1; usually 0.1
	Splitting  Splitting // usually SplittingBADODAB
	PerElement bool      // whether each element has its own chi, with d = 1
	Coupling   float64   // k, above 0: the change of chi in a step at twice the temperature; usually 0.001
	Couplings  ByLayer   // overrides Coupling for single layers or parameters
}

// Name implements Sampler.
func (SGNHT) Name() string { return "sgnht" }

// EffectiveStepSize implements EffectiveStepSizer.
func (s SGNHT) EffectiveStepSize(_ *graph.Session, _ int, _ string, n int, h float64) ([]float64, error) {
	return slices.Repeat([]float64{h / s.Friction}, n), nil
}

// Validate implements Sampler.
func (s SGNHT) Validate() error {
	switch err := checkBoundedFriction(s.Name(), s.Friction); {
	case err != nil:
		return err
	case s.Splitting != SplittingEuler && s.Splitting != SplittingBADODAB:
		return errors.Errorf("langevin: sgnht: Splitting must be %q or %q, got %q", SplittingEuler, SplittingBADODAB, s.Splitting)
	case !positive(s.Coupling):
		return errors.Errorf("langevin: sgnht: Coupling must be positive, got %v", s.Coupling)
	}
	return errors.WithMessage(s.Couplings.check(positive, "positive"), "langevin: sgnht: Couplings")
}

// Update implements Sampler.
func (s SGNHT) Update(b *graph.Builder, in UpdateInputs, parameter, gradient *graph.Node) *graph.Node {
	s.Coupling, s.Couplings = s.Couplings.of(in.Name, s.Coupling), ""
	return attachMomentum(b, s, in, parameter, gradient, 1)
}

func (s SGNHT) kickFirst() bool { return s.Splitting == SplittingBADODAB }

func (s SGNHT) byLayer() []ByLayer { return []ByLayer{s.Couplings} }

func (s SGNHT) states(n int) []momentumState {
	if s.PerElement {
		return []momentumState{{thermostat, n, constant(s.Friction)}}
	}
	return []momentumState{sharedThermostat(s.Friction)}
}

// thermostat ends the names of the states that hold chi.
const thermostat = ".thermostat"

// sharedThermostat is the state of a chi that a parameter's elements share. It holds chi rounded to
// the program's float and the remainder, because a step may change chi by less than float32
// resolves.
func sharedThermostat(friction float64) momentumState {
	return momentumState{thermostat, 2, func(_ uint64, _ uint32, _ uint16, _ tensor.Shape, chi []float64) { chi[0], chi[1] = friction, 0 }}
}

func constant(value float64) graph.Initializer {
	return func(_ uint64, _ uint32, _ uint16, _ tensor.Shape, values []float64) {
		for i := range values {
			values[i] = value
		}
	}
}

// lower implements momentumRule. A shared thermostat adapts to the mean square of all the
// parameter's velocities, which is known only after every tile has moved its velocities, so the
// adaptation is a separate phase. A thermostat for each element needs no such phase.
func (s SGNHT) lower(l *graph.Lowering, u momentumUpdate) (string, tensor.HostKernel, []float64) {
	n := l.Shapes[0].Elements()
	scalars := []float64{s.Friction, s.Coupling, maxExcess}
	switch {
	case s.PerElement && s.Splitting == SplittingEuler:
		return "_euler_element", op.UpdateHost(l, n, u, eulerElements[float32], eulerElements[float64]), scalars
	case s.PerElement:
		return "_badodab_element", op.UpdateHost(l, n, u, badodabElements[float32], badodabElements[float64]), scalars
	case s.Splitting == SplittingEuler:
		host := op.UpdateHost(l, n, u, eulerTile[float32], eulerTile[float64])
		host.Workspace = 8 * host.Phases[0].Tiles
		host.Phases = append(host.Phases, adaptation(l, u, n, s.Coupling))
		return "_euler", host, scalars
	default:
		kick := op.UpdateHost(l, n, u, badodabKick[float32], badodabKick[float64])
		return "_badodab", badodabHost(l, u, n, s.Coupling, kick, graph.Pick(l, badodabDrift[float32], badodabDrift[float64])), scalars
	}
}

// badodabHost returns the host kernel of B, D, the parts A, O and A, and D, with a shared chi. kick
// performs B, and writes the sum of each tile's squared velocities to the workspace. drift performs
// A, O and A on the elements lo to hi, and returns that sum.
func badodabHost(
	l *graph.Lowering, u momentumUpdate, n int, coupling float64, kick tensor.HostKernel, drift func(u momentumUpdate, a *tensor.Args, lo, hi int) float64,
) tensor.HostKernel {
	tiles, adapt := kick.Phases[0].Tiles, adaptation(l, u, n, coupling/2)
	kick.Workspace = 8 * tiles
	kick.Phases = append(kick.Phases, adapt, tensor.Phase{Tiles: tiles, Run: func(a *tensor.Args, tile int) {
		lo, hi := op.TileOfUpdate(n, tile)
		tensor.Workspace[float64](a)[tile] = drift(u, a, lo, hi)
	}}, adapt)
	return kick
}

// calls returns the update, in which each block also writes the sum of its velocities' squares,
// followed by the adaptation of the shared chi. With SplittingBADODAB the calls kick, adapt chi,
// drift, and adapt chi again.
func (s SGNHT) calls(l *graph.Lowering, update tensor.Call) []tensor.Call {
	if s.PerElement {
		return []tensor.Call{update}
	}
	c := sharedCallsOf(l, update, 1)
	if s.Splitting == SplittingEuler {
		return []tensor.Call{c.update, c.adapt(l, 1)}
	}
	return []tensor.Call{c.update, c.adapt(l, 0.5), c.drift(l, "sgnht_drift"), c.adapt(l, 0.5)}
}

// sharedCalls builds the GPU calls of a rule whose elements share a chi. chi must be the first of
// the rule's states, and the first attributes must be the friction, the coupling and the largest
// excess.
type sharedCalls struct {
	update                tensor.Call // also writes the squares
	squares               *tensor.Buffer
	w, v, chi             tensor.Argument
	tables, n, attributes []tensor.Argument
	noise, dataSize       tensor.Argument
}

// sharedCallsOf splits the arguments of an update's call. states is the number of the rule's
// states.
func sharedCallsOf(l *graph.Lowering, update tensor.Call, states int) sharedCalls {
	a := update.Arguments
	rest := a[1+momentumStates+states:]
	c := sharedCalls{
		update: update, squares: tensor.NewWorkspace(tensor.Float64, op.UpdateTiles(l.Shapes[0].Elements())),
		w: a[1+momentumW], v: a[1+momentumV], chi: a[1+momentumStates],
		tables: []tensor.Argument{a[1+momentumRates], a[1+momentumTemperatures], rest[0]},
		n:      rest[1:4], noise: rest[4], attributes: rest[6:9], dataSize: a[len(a)-1],
	}
	c.update.Arguments = append([]tensor.Argument{tensor.Out(c.squares)}, a...)
	return c
}

// adapt returns the call of D for a fraction of a step.
func (c sharedCalls) adapt(l *graph.Lowering, share float64) tensor.Call {
	blocks := op.UpdateTiles(l.Shapes[0].Elements())
	return l.Call("sgnht_adapt", tensor.Block(min(blocks, op.SumThreads)), slices.Concat(
		[]tensor.Argument{c.chi, tensor.In(c.squares)}, c.tables, c.n,
		[]tensor.Argument{tensor.Int(blocks), tensor.Float(tensor.Float64, share)}, c.attributes[1:], []tensor.Argument{c.dataSize})...)
}

// drift returns the call of A, O and A. more are the rule's states that the kernel needs besides
// chi.
func (c sharedCalls) drift(l *graph.Lowering, stem string, more ...tensor.Argument) tensor.Call {
	return l.Call(stem, c.update.Grid, slices.Concat(
		[]tensor.Argument{tensor.Out(c.squares), c.w, c.v}, c.tables, []tensor.Argument{c.chi}, more, c.n,
		[]tensor.Argument{c.noise, c.attributes[0], c.dataSize})...)
}

// adaptation returns the phase of D, which changes the shared chi of n velocities. In the previous
// phase each tile has written the sum of its velocities' squares to the workspace.
func adaptation(l *graph.Lowering, u momentumUpdate, n int, coupling float64) tensor.Phase {
	adapt := graph.Pick(l, adapt[float32], adapt[float64])
	return tensor.Phase{Tiles: 1, Run: func(a *tensor.Args, _ int) { adapt(u, a, n, coupling) }}
}

// adapt is D on the host.
func adapt[T float32 | float64](u momentumUpdate, a *tensor.Args, n int, coupling float64) {
	s := momentumTileOf[T](u, a, 0, 0)
	squares := 0.0
	for _, v := range tensor.Workspace[float64](a)[:op.UpdateTiles(n)] {
		squares += v
	}
	chi := tensor.Slice[T](a, 1+momentumStates)
	gain, loss, most := s.adaptation(coupling)
	adapted := sharedChi(chi) + min(float64(gain*(squares/float64(n)))-loss, most)
	// The second element is the remainder of rounding chi to the program's float.
	chi[0] = T(adapted)
	chi[1] = T(adapted - float64(chi[0]))
}

// adaptation returns the coefficients of D: chi changes by gain v.v/d - loss, limited to a rise of
// most. At temperature 0 or step size 0 all are 0, so that chi stays constant.
func (s *momentumTile[T]) adaptation(coupling float64) (gain, loss, most float64) {
	equilibrium := s.h * s.temperature
	if equilibrium == 0 {
		return 0, 0, 0
	}
	return coupling / equilibrium, coupling, coupling * maxExcess
}

// maxExcess bounds v.v/(d h T) - 1 in D. It must be large: single minibatches of images kick layers
// of few weights to several times the temperature, and a bound near that would leave them hot.
const maxExcess = 20

// sharedChi returns chi with its remainder, see sharedThermostat.
func sharedChi[T float32 | float64](chi []T) float64 { return float64(chi[0]) + float64(chi[1]) }

// eulerTile is the first phase of SplittingEuler. It writes the sum of the velocities' squares to
// the workspace, from which the second phase adapts chi.
func eulerTile[T float32 | float64](u momentumUpdate, a *tensor.Args, lo, hi int) float64 {
	s := momentumTileOf[T](u, a, lo, hi)
	keep, scale := T(1-sharedChi(tensor.Slice[T](a, 1+momentumStates))), s.scale(u.rule.(SGNHT).Friction)
	var gradients [random.BlockSize]T
	var z [random.BlockSize]float32
	squares := 0.0
	for from := 0; from < len(s.w); from += random.BlockSize {
		w, v, g := s.nextBlock(from, &gradients, &z)
		// SGHMC's pass with the friction chi: chi is constant within a step.
		kernel.SGHMC(w, v, g, z[:], keep, s.rate, scale)
		squares += virial(v, v)
	}
	tensor.Workspace[float64](a)[tileAt[T](a, lo)] = squares
	return s.virial
}

// badodabKick performs B, also for SMILE, and writes the sum of the velocities' squares to the
// workspace.
func badodabKick[T float32 | float64](u momentumUpdate, a *tensor.Args, lo, hi int) float64 {
	s := momentumTileOf[T](u, a, lo, hi)
	rate := s.rate
	var gradients [random.BlockSize]T
	var z [random.BlockSize]float32
	squares := 0.0
	for from := 0; from < len(s.w); from += random.BlockSize {
		_, v, g := s.gradientBlock(from, &gradients, &z)
		g = g[:len(v)]
		for i := range v {
			v[i] = op.Descend(v[i], rate, g[i])
		}
		squares += virial(v, v)
	}
	tensor.Workspace[float64](a)[tileAt[T](a, lo)] = squares
	return s.virial
}

// badodabDrift performs A, O and A. It returns the sum of the squares of the new velocities.
func badodabDrift[T float32 | float64](u momentumUpdate, a *tensor.Args, lo, hi int) float64 {
	s := momentumTileOf[T](u, a, lo, hi)
	c, strength := relaxation(sharedChi(tensor.Slice[T](a, 1+momentumStates)), u.rule.(SGNHT).Friction)
	keep, scale := T(c), s.scale(strength)
	var z [random.BlockSize]float32
	squares := 0.0
	for from := 0; from < len(s.w); from += random.BlockSize {
		to := min(from+random.BlockSize, len(s.w))
		s.draw(from, &z)
		kernel.Drift(s.w[from:to], s.v[from:to], z[:], keep, scale)
		squares += virial(s.v[from:to], s.v[from:to])
	}
	return squares
}

// eulerElements is SplittingEuler with a chi for each element: a single phase.
func eulerElements[T float32 | float64](u momentumUpdate, a *tensor.Args, lo, hi int) float64 {
	s := momentumTileOf[T](u, a, lo, hi)
	chis := tensor.Slice[T](a, 1+momentumStates)[lo:hi]
	rate, scale := s.rate, s.scale(u.rule.(SGNHT).Friction)
	increase, decrease, limit := s.adaptation(u.rule.(SGNHT).Coupling)
	gain, loss, most := T(increase), T(decrease), T(limit)
	var gradients [random.BlockSize]T
	var z [random.BlockSize]float32
	for from := 0; from < len(s.w); from += random.BlockSize {
		w, v, g := s.nextBlock(from, &gradients, &z)
		v, g, chi := v[:len(w)], g[:len(w)], chis[from:][:len(w)]
		for i := range w {
			v[i] = op.Descend(T((1-chi[i])*v[i]), rate, g[i]) + T(scale*T(z[i]))
			w[i] += v[i]
			chi[i] += min(T(gain*T(v[i]*v[i]))-loss, most)
		}
	}
	return s.virial
}

// badodabElements is SplittingBADODAB with a chi for each element: a single phase.
func badodabElements[T float32 | float64](u momentumUpdate, a *tensor.Args, lo, hi int) float64 {
	s := momentumTileOf[T](u, a, lo, hi)
	chis := tensor.Slice[T](a, 1+momentumStates)[lo:hi]
	friction, rate := u.rule.(SGNHT).Friction, s.rate
	increase, decrease, limit := s.adaptation(u.rule.(SGNHT).Coupling / 2)
	gain, loss, most := T(increase), T(decrease), T(limit)
	var gradients [random.BlockSize]T
	var z [random.BlockSize]float32
	for from := 0; from < len(s.w); from += random.BlockSize {
		w, v, g := s.nextBlock(from, &gradients, &z)
		v, g, chi := v[:len(w)], g[:len(w)], chis[from:][:len(w)]
		for i := range w {
			kicked := op.Descend(v[i], rate, g[i])
			// All of BADODAB's parts for one element: its chi depends on no other.
			half := chi[i] + min(T(gain*T(kicked*kicked))-loss, most)
			c, strength := relaxation(float64(half), friction)
			v[i] = T(T(c)*kicked) + T(s.scale(strength)*T(z[i]))
			chi[i] = half + min(T(gain*T(v[i]*v[i]))-loss, most)
			w[i] += T(0.5 * (kicked + v[i]))
		}
	}
	return s.virial
}
