package langevin

import (
	"math"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/graph/op"
	"github.com/pollen-ml/pollen/tensor"
	"github.com/pollen-ml/pollen/tensor/kernel"
	"github.com/pollen-ml/pollen/tensor/random"
)

// differentiate implements lossDifferentiator. It also adds the estimates of the Hessian's diagonal
// that Gamma needs.
func (p PSGLD) differentiate(b *graph.Builder, loss *graph.Node, parameters []*graph.Node) (Sampler, []*graph.Node) {
	if !p.Gamma.needsCurvature() {
		return p, b.Gradients(loss, parameters...)
	}
	probe := hessianProbe{b, loss, parameters, p.Distance}
	if p.Distance == 0 {
		probe.distance = defaultDistance(b.DType())
	}
	differentiate := probe.hutchinson
	if p.Gamma == GammaExact {
		differentiate = probe.exact
	}
	gradients, diagonals := differentiate()
	curved := curvedPSGLD{PSGLD: p, diagonals: map[*graph.Node]*graph.Node{}}
	for i, parameter := range parameters {
		curved.diagonals[parameter] = diagonals[i]
	}
	return curved, gradients
}

// needsCurvature reports whether Gamma is computed from the Hessian's diagonal.
func (g Gamma) needsCurvature() bool { return g == GammaHutchinson || g == GammaExact }

// curvedPSGLD is PSGLD with the diagonals of the Hessian of the mean loss.
type curvedPSGLD struct {
	PSGLD
	diagonals map[*graph.Node]*graph.Node // by parameter
}

// Update implements Sampler.
func (p curvedPSGLD) Update(b *graph.Builder, in UpdateInputs, parameter, gradient *graph.Node) *graph.Node {
	update := curvedUpdate{psgldUpdate{psgld: p.PSGLD, dataSize: in.DataSize, prior: in.Prior, stream: b.Stream()}}
	shape := graph.ShapeOf(parameter)
	second := b.State(in.Name+secondMomentSuffix, nil, shape...)
	slope := b.State(in.Name+".slope of the second moment", nil, shape...)
	return b.Apply(update, parameter, gradient, second, slope, p.diagonals[parameter], in.Rates, in.Temperatures, b.Header())
}

// errNoCurvature returns the error of an Update that has no estimates of the parameter's Hessian.
func (p PSGLD) errNoCurvature(parameter string) error {
	return errors.Errorf("langevin: psgld: Gamma %q of %s needs the loss's curvature: the sampler must be attached by Attach, which finds it",
		p.Gamma, parameter)
}

// curvedUpdate is the op that moves w, V and dV/dtheta. Inputs: w, dw, V, dV/dtheta and the
// Hessian's diagonal of w's shape, rates and temperatures by step, header. Output: statistics, see
// op.UpdateShape.
type curvedUpdate struct{ psgldUpdate }

func (curvedUpdate) Updates() []int { return []int{0, 2, 3} }

func (curvedUpdate) Shape(in []tensor.Shape) (tensor.Shape, error) { return op.UpdateShape(in, 3, 2) }

func (u curvedUpdate) Lower(l *graph.Lowering) {
	n := l.Shapes[0].Elements()
	l.Emit("psgld_gamma_update", op.UpdateGrid(n), op.UpdateHost(l, n, u, curvedTile[float32], curvedTile[float64]), append([]tensor.Argument{
		l.Out(), l.InOut(0), l.In(1), l.InOut(2), l.InOut(3), l.In(4), l.In(5), l.In(6), l.In(7), tensor.Int(n), tensor.Int(l.Shapes[5][0]),
		tensor.Int(l.Shapes[6][0]), tensor.Uint(uint32(u.stream)), tensor.Float(l.DType, u.psgld.Alpha), tensor.Float(l.DType, u.psgld.Lambda),
	}, u.prior.KernelArguments(l.DType, u.dataSize)...)...)
}

// curvedTile performs a step of PSGLD with the term Gamma = dG/dtheta. Next to V, the running mean
// of g^2, it keeps dV/dtheta, the running mean of 2 g dg/dtheta, for which it needs the diagonal of
// the loss's Hessian.
func curvedTile[T float32 | float64](u curvedUpdate, a *tensor.Args, lo, hi int) float64 {
	s := preconditionedTileOf[T](u.psgldUpdate, a, 6, lo, hi)
	// Until V has its full memory, Gamma is left out, see PSGLD.
	drift := T(s.h * s.temperature)
	if s.keep != T(u.psgld.Alpha) {
		drift = 0
	}
	var gradients [random.BlockSize]T
	var z [random.BlockSize]float32
	for from := 0; from < len(s.w); from += random.BlockSize {
		w, v, g := s.nextBlock(from, &gradients, &z)
		dv, diagonal := tensor.Slice[T](a, 4)[lo+from:], tensor.Slice[T](a, 5)[lo+from:]
		for i, theta := range w {
			// The loss's curvature is a node of the graph; the prior's is known in closed form.
			curvature := diagonal[i] + T(s.term.curvature(float64(theta)))
			dv[i] = T(s.keep*dv[i]) + T(T(T(2*(1-s.keep))*g[i])*curvature)
		}
		kernel.PSGLD(w, v, g, z[:], s.keep, s.lambda, s.rate, s.scale)
		if drift > 0 {
			for i := range w {
				w[i] += T(drift * gamma(v[i], dv[i], s.lambda))
			}
		}
	}
	return s.virial
}

// gamma returns dG/dtheta = -dV/dtheta G^2 / (2 sqrt V), with G = 1/(lambda + sqrt V). It is 0 at V
// = 0, where G has a kink.
func gamma[T float32 | float64](v, dv, lambda T) T {
	if v == 0 {
		return 0
	}
	root := T(math.Sqrt(float64(v)))
	sum := lambda + root
	return -dv / T(T(2*root)*T(sum*sum))
}
