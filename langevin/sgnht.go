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

// Splitting says in which order SGNHT does the parts of a step.
type Splitting string

// The splittings.
const (
	// SplittingEuler is the paper's: velocities, then parameters, then the thermostat.
	SplittingEuler Splitting = "euler"
	// SplittingBADODAB is symmetric, with exact friction and noise (Leimkuhler and Shang 2016).
	SplittingBADODAB Splitting = "badodab"
)

// SGNHT is the stochastic gradient Nose-Hoover thermostat (Ding, Fang, Babbush, Chen, Skeel and
// Neven 2014, algorithm 1): the friction chi, one of each parameter, adapts until v.v/d, the mean
// over the parameter's d elements, is h T, so that the noise of minibatches does not heat. At the
// start v ~ N(0, h T) and chi = a. SplittingEuler is
//
//	v     <- (1 - chi) v - h gU + sqrt(2 a h T) xi
//	theta <- theta + v
//	chi   <- chi + v.v/d - h T
//
// and SplittingBADODAB, in which the two halves of B are one, with one gradient, is
//
//	B  v     <- v - h gU
//	D  chi   <- chi + (v.v/d - h T)/2
//	A  theta <- theta + v/2
//	O  v     <- c v + sqrt((1 - c^2) (a/chi) h T) xi,    c = exp(-chi)
//	A  theta <- theta + v/2
//	D  chi   <- chi + (v.v/d - h T)/2
//
// In the paper's notation, with the time step e: h = e^2, v = e p, chi = e xi and a = e A. It moves
// as SGLD does at the step size h/chi, where chi is about a + h Var(gU)/(2T).
//
// It targets exp(-U/T). v.v/d is h T on average at any h, which the kinetic temperature v.v/(h d)
// shows. On a quadratic U the configurational one is about T (1 - chi/2) with SplittingEuler,
// whatever h is, and T - chi h Var(gU)/8 with SplittingBADODAB. At T = 0, chi grows until
// everything is at rest.
type SGNHT struct {
	Friction   float64 // a, above 0, at most 1
	Splitting  Splitting
	PerElement bool // each element has a chi of its own, and d is 1
}

// Name implements Sampler.
func (SGNHT) Name() string { return "sgnht" }

// Validate implements Sampler.
func (s SGNHT) Validate() error {
	switch {
	case !(s.Friction > 0 && s.Friction <= 1):
		return errors.Errorf("langevin: sgnht: Friction is %v, wants 0 < Friction <= 1", s.Friction)
	case s.Splitting != SplittingEuler && s.Splitting != SplittingBADODAB:
		return errors.Errorf("langevin: sgnht: Splitting is %q, wants %q or %q", s.Splitting, SplittingEuler, SplittingBADODAB)
	}
	return nil
}

// Update implements Sampler.
func (s SGNHT) Update(b *graph.Builder, f Force, parameter, gradient *graph.Node) *graph.Node {
	start := func(_ uint64, _ uint32, _ uint16, _ tensor.Shape, chi []float64) {
		for i := range chi {
			chi[i] = s.Friction
		}
		if !s.PerElement {
			chi[1] = 0
		}
	}
	return attachMomentum(b, s, f, parameter, gradient, 1, start)
}

// thermostats: a parameter's single chi is kept as chi rounded to the program's float, and the
// remainder, because a step may change chi by less than float32 resolves.
func (s SGNHT) thermostats(n int) int {
	if s.PerElement {
		return n
	}
	return 2
}

func (s SGNHT) lower(l *graph.Lowering, u momentumUpdate) (string, tensor.HostKernel, []float64) {
	n := l.Shapes[0].Elements()
	scalars := []float64{s.Friction}
	switch {
	case s.PerElement && s.Splitting == SplittingEuler:
		return "_euler_element", updateTiles(l, n, u, eulerElements[float32], eulerElements[float64]), scalars
	case s.PerElement:
		return "_badodab_element", updateTiles(l, n, u, badodabElements[float32], badodabElements[float64]), scalars
	case s.Splitting == SplittingEuler:
		host := updateTiles(l, n, u, eulerTile[float32], eulerTile[float64])
		host.Workspace = 8 * host.Phases[0].Tiles
		host.Phases = append(host.Phases, adaptation(l, u, n, 1))
		return "_euler", host, scalars
	default:
		host := updateTiles(l, n, u, badodabKick[float32], badodabKick[float64])
		host.Workspace = 8 * host.Phases[0].Tiles
		drift := tensor.Phase{Tiles: host.Phases[0].Tiles, Run: graph.Pick(l, badodabDrifts[float32](u, n), badodabDrifts[float64](u, n))}
		host.Phases = append(host.Phases, adaptation(l, u, n, 0.5), drift, adaptation(l, u, n, 0.5))
		return "_badodab", host, scalars
	}
}

// calls moves the velocities, each block of which leaves the sum of their squares, and adapts the
// chi that they share; SplittingBADODAB kicks, adapts chi, drifts, and adapts chi again.
func (s SGNHT) calls(l *graph.Lowering, update tensor.Call) []tensor.Call {
	if s.PerElement {
		return []tensor.Call{update}
	}
	a := update.Arguments
	w, v, chi := a[1+momentumW], a[1+momentumV], a[1+momentumThermostats]
	schedules := []tensor.Argument{a[1+momentumRates], a[1+momentumTemperatures], a[2+momentumThermostats]}
	scalars := a[3+momentumThermostats:]
	n, noise, friction, dataSize := scalars[:3], scalars[3], scalars[5], a[len(a)-1]
	blocks := tiles(l.Shapes[0].Elements())
	squares := tensor.NewWorkspace(tensor.Float64, blocks)
	update.Arguments = append([]tensor.Argument{tensor.Out(squares)}, a...)
	adapt := func(share float64) tensor.Call {
		return l.Call("sgnht_adapt", tensor.Block(min(blocks, op.SumThreads)), slices.Concat(
			[]tensor.Argument{chi, tensor.In(squares)}, schedules, n,
			[]tensor.Argument{tensor.Int(blocks), tensor.Real(tensor.Float64, share), dataSize})...)
	}
	if s.Splitting == SplittingEuler {
		return []tensor.Call{update, adapt(1)}
	}
	drift := l.Call("sgnht_drift", update.Grid, slices.Concat(
		[]tensor.Argument{tensor.Out(squares), w, v}, schedules, []tensor.Argument{chi}, n,
		[]tensor.Argument{noise, friction, dataSize})...)
	return []tensor.Call{update, adapt(0.5), drift, adapt(0.5)}
}

// adaptation is the phase that changes the one chi of n velocities, by that share of a step. Each
// tile of the phase before has left the sum of the squares of its velocities in the workspace.
func adaptation(l *graph.Lowering, u momentumUpdate, n int, share float64) tensor.Phase {
	adapt := graph.Pick(l, adapt[float32], adapt[float64])
	return tensor.Phase{Tiles: 1, Run: func(a *tensor.Args, _ int) { adapt(u, a, n, share) }}
}

func adapt[T float32 | float64](u momentumUpdate, a *tensor.Args, n int, share float64) {
	s := sweepOf[T](u, a, 0, 0)
	squares := 0.0
	for _, v := range tensor.Workspace[float64](a)[:tiles(n)] {
		squares += v
	}
	chi := tensor.Slice[T](a, 1+momentumThermostats)
	adapted := oneChi(chi) + share*(squares/float64(n)-s.h*s.temperature)
	chi[0] = T(adapted)
	chi[1] = T(adapted - float64(chi[0]))
}

func oneChi[T float32 | float64](chi []T) float64 { return float64(chi[0]) + float64(chi[1]) }

func eulerTile[T float32 | float64](u momentumUpdate, a *tensor.Args, lo, hi int) float64 {
	s := sweepOf[T](u, a, lo, hi)
	keep, scale := T(1-oneChi(tensor.Slice[T](a, 1+momentumThermostats))), s.scale(u.rule.(SGNHT).Friction)
	var gradients [random.BlockSize]T
	var z [random.BlockSize]float32
	squares := 0.0
	for from := 0; from < len(s.w); from += random.BlockSize {
		w, v, g := s.block(from, &gradients, &z)
		kernel.SGHMC(w, v, g, z[:], keep, s.rate, scale)
		squares += virial(v, v)
	}
	tensor.Workspace[float64](a)[lo/op.UpdateTile] = squares
	return s.virial
}

func badodabKick[T float32 | float64](u momentumUpdate, a *tensor.Args, lo, hi int) float64 {
	s := sweepOf[T](u, a, lo, hi)
	rate := s.rate
	var gradients [random.BlockSize]T
	var z [random.BlockSize]float32
	squares := 0.0
	for from := 0; from < len(s.w); from += random.BlockSize {
		_, v, g := s.forces(from, &gradients, &z)
		g = g[:len(v)]
		for i := range v {
			v[i] = op.Descend(v[i], rate, g[i])
		}
		squares += virial(v, v)
	}
	tensor.Workspace[float64](a)[lo/op.UpdateTile] = squares
	return s.virial
}

func badodabDrifts[T float32 | float64](u momentumUpdate, n int) func(a *tensor.Args, tile int) {
	return func(a *tensor.Args, tile int) {
		tensor.Workspace[float64](a)[tile] = badodabDrift[T](u, a, tile*op.UpdateTile, min(n, (tile+1)*op.UpdateTile))
	}
}

// badodabDrift is A, O and A. It returns the sum of the squares of the new velocities.
func badodabDrift[T float32 | float64](u momentumUpdate, a *tensor.Args, lo, hi int) float64 {
	s := sweepOf[T](u, a, lo, hi)
	c, strength := relaxation(oneChi(tensor.Slice[T](a, 1+momentumThermostats)), u.rule.(SGNHT).Friction)
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

func eulerElements[T float32 | float64](u momentumUpdate, a *tensor.Args, lo, hi int) float64 {
	s := sweepOf[T](u, a, lo, hi)
	chis := tensor.Slice[T](a, 1+momentumThermostats)[lo:hi]
	rate, scale, equilibrium := s.rate, s.scale(u.rule.(SGNHT).Friction), T(s.h*s.temperature)
	var gradients [random.BlockSize]T
	var z [random.BlockSize]float32
	for from := 0; from < len(s.w); from += random.BlockSize {
		w, v, g := s.block(from, &gradients, &z)
		v, g, chi := v[:len(w)], g[:len(w)], chis[from:][:len(w)]
		for i := range w {
			v[i] = op.Descend(T((1-chi[i])*v[i]), rate, g[i]) + T(scale*T(z[i]))
			w[i] += v[i]
			chi[i] += T(v[i]*v[i]) - equilibrium
		}
	}
	return s.virial
}

func badodabElements[T float32 | float64](u momentumUpdate, a *tensor.Args, lo, hi int) float64 {
	s := sweepOf[T](u, a, lo, hi)
	chis := tensor.Slice[T](a, 1+momentumThermostats)[lo:hi]
	friction, rate, equilibrium := u.rule.(SGNHT).Friction, s.rate, T(s.h*s.temperature)
	var gradients [random.BlockSize]T
	var z [random.BlockSize]float32
	for from := 0; from < len(s.w); from += random.BlockSize {
		w, v, g := s.block(from, &gradients, &z)
		v, g, chi := v[:len(w)], g[:len(w)], chis[from:][:len(w)]
		for i := range w {
			kicked := op.Descend(v[i], rate, g[i])
			half := chi[i] + T(0.5*(T(kicked*kicked)-equilibrium))
			c, strength := relaxation(float64(half), friction)
			v[i] = T(T(c)*kicked) + T(s.scale(strength)*T(z[i]))
			chi[i] = half + T(0.5*(T(v[i]*v[i])-equilibrium))
			w[i] += T(0.5 * (kicked + v[i]))
		}
	}
	return s.virial
}
