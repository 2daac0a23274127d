package langevin

import (
	"math"
	"slices"

	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/graph/op"
	"github.com/pollen-ml/pollen/tensor"
	"github.com/pollen-ml/pollen/tensor/random"
)

// SMILE is microcanonical Langevin dynamics on minibatches (Sommer, Diao, Robnik, Seljak and
// Ruegamer 2026). The d velocities of a parameter together keep one length, whatever the gradients
// are. Minibatch noise of equal strength in all elements turns the velocities but cannot heat them,
// so nothing has to be estimated or adapted. With v ~ N(0, h T) at the start a step is
//
//	B  v     <- v - h gU
//	N  v     <- r v,                              r = sqrt((d-1) h T)/|v|
//	A  theta <- theta + q v/2,                    q = 2r/(1+r)
//	O  v     <- c v + sqrt((1 - c^2) h T) xi,     c = exp(-a)
//	A  theta <- theta + q v/2
//
// The effective step size is h/f, where f is a - log r, about a + h Var(gU)/(2T).
//
// It targets exp(-U/T), and in continuous time has no bias for any a. With finite steps and in many
// dimensions the factor q makes the mean temperature right along directions of small curvature,
// however large the noise is; without q it would be (1+r)/(2r) of T. Along such directions element
// i is at
//
//	T (1 + s (n - 1)),  s = (1-r) (1+c)/(2 - 2rc)
//
// where n is Var(gU_i) over its mean. The same holds for any sum of elements: noise that they share
// heats along it as in SGNHT. In few dimensions the temperature is lower by some 8a/d^2, because O
// changes the length of the velocities until the next N. N fixes the kinetic temperature, which
// therefore shows nothing: look at the configurational one. At T = 0 there is no length, and a
// parameter of one element has no direction: there r is 1, and the rule is BAOAB.
//
// The paper has one length for all parameters together, so that the parameters with the least noise
// would be cooled for the others, and friction from a length L. Its preconditioning by the noise of
// each element was tried and left out: a network's weights share much of their noise, so that
// injecting less noise leaves its stiff directions hotter, and on a hundred digits the result is
// farther from HMC.
type SMILE struct {
	Friction float64 // a, above 0; usually 0.1
}

// Name implements Sampler.
func (SMILE) Name() string { return "smile" }

// EffectiveStepSize implements EffectiveStepSizer.
func (m SMILE) EffectiveStepSize(_ *graph.Session, _ int, _ string, n int, h float64) ([]float64, error) {
	return exactFrictionStepSize(m.Friction, n, h), nil
}

// Validate implements Sampler.
func (m SMILE) Validate() error { return checkFriction(m.Name(), m.Friction) }

// Update implements Sampler.
func (m SMILE) Update(b *graph.Builder, in UpdateInputs, parameter, gradient *graph.Node) *graph.Node {
	return attachMomentum(b, m, in, parameter, gradient, 1)
}

func (SMILE) states(int) []momentumState { return nil }

func (m SMILE) lower(l *graph.Lowering, u momentumUpdate) (string, tensor.HostKernel, []float64) {
	n := l.Shapes[0].Elements()
	host := op.UpdateHost(l, n, u, badodabKick[float32], badodabKick[float64])
	host.Workspace = 8 * (host.Phases[0].Tiles + 1)
	turn := tensor.Phase{Tiles: 1, Run: graph.Pick(l, smileTurn[float32](u, n), smileTurn[float64](u, n))}
	drift := tensor.Phase{Tiles: host.Phases[0].Tiles, Run: graph.Pick(l, smileDrift[float32](u, n), smileDrift[float64](u, n))}
	host.Phases = append(host.Phases, turn, drift)
	return "", host, []float64{m.Friction}
}

// calls returns the kick, in which each block also writes the sum of its velocities' squares, the
// computation of r, and the drift.
func (m SMILE) calls(l *graph.Lowering, update tensor.Call) []tensor.Call {
	a := update.Arguments
	squares, r := tensor.NewWorkspace(tensor.Float64, op.UpdateTiles(l.Shapes[0].Elements())), tensor.NewWorkspace(tensor.Float64, 1)
	w, v, rest := a[1+momentumW], a[1+momentumV], a[1+momentumStates:]
	tables, n, noise, friction, dataSize := []tensor.Argument{a[1+momentumRates], a[1+momentumTemperatures], rest[0]}, rest[1:4], rest[4], rest[6], a[len(a)-1]
	blocks := squares.Elements
	turn := l.Call("smile_turn", tensor.Block(min(blocks, op.SumThreads)), slices.Concat(
		[]tensor.Argument{tensor.Out(r), tensor.In(squares)}, tables, n, []tensor.Argument{tensor.Int(blocks), dataSize})...)
	drift := l.Call("smile_drift", update.Grid, slices.Concat(
		[]tensor.Argument{tensor.Out(squares), w, v}, tables, []tensor.Argument{tensor.In(r)}, n, []tensor.Argument{noise, friction, dataSize})...)
	update.Arguments = append([]tensor.Argument{tensor.Out(squares)}, a...)
	return []tensor.Call{update, turn, drift}
}

// smileTurn computes r from the sums of squares in the workspace, and writes it after them.
func smileTurn[T float32 | float64](u momentumUpdate, n int) func(a *tensor.Args, _ int) {
	return func(a *tensor.Args, _ int) {
		s, workspace := momentumTileOf[T](u, a, 0, 0), tensor.Workspace[float64](a)
		squares := 0.0
		for _, v := range workspace[:op.UpdateTiles(n)] {
			squares += v
		}
		// r stays 1 at temperature 0 and for a single element, which have no length to keep.
		r := 1.0
		if length := float64(n-1) * s.h * s.temperature; length > 0 && squares > 0 {
			r = math.Sqrt(length / squares)
		}
		workspace[op.UpdateTiles(n)] = r
	}
}

// smileDrift performs N, A, O and A.
func smileDrift[T float32 | float64](u momentumUpdate, n int) func(a *tensor.Args, tile int) {
	c := math.Exp(-u.rule.(SMILE).Friction)
	return func(a *tensor.Args, tile int) {
		lo, hi := op.TileOfUpdate(n, tile)
		s, r := momentumTileOf[T](u, a, lo, hi), tensor.Workspace[float64](a)[op.UpdateTiles(n)]
		turned, keep, scale, half := T(r), T(c), s.scale((1-c*c)/2), T(r/(1+r))
		var z [random.BlockSize]float32
		for from := 0; from < len(s.w); from += random.BlockSize {
			to := min(from+random.BlockSize, len(s.w))
			s.draw(from, &z)
			w, v := s.w[from:to], s.v[from:to]
			v = v[:len(w)]
			for i := range w {
				old := T(turned * v[i])
				v[i] = T(keep*old) + T(scale*T(z[i]))
				w[i] += T(half * T(old+v[i]))
			}
		}
	}
}
