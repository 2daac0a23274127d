package langevin

import (
	"math"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/graph/op"
	"github.com/pollen-ml/pollen/tensor"
	"github.com/pollen-ml/pollen/tensor/random"
)

// Gamma says what becomes of the term h T Gamma of PSGLD, where Gamma = dG/dtheta.
type Gamma string

// The treatments of Gamma.
const (
	// GammaNone leaves the term out while G goes on adapting, as the paper's experiments do: a bias that does not vanish with h.
	GammaNone Gamma = "none"
	// GammaFrozen stops adapting V, and so G, at step FreezeAt, the end of burn-in: from there on Gamma is 0 exactly.
	GammaFrozen Gamma = "frozen"
)

// PSGLD is SGLD preconditioned as RMSProp is (Li, Chen, Carlson and Carin 2016, algorithm 1), per element, with the gradient
// of the mean loss g = gU/N:
//
//	V <- Alpha V + (1 - Alpha) g^2,    V = g^2 at the first step
//	G  = 1 / (Lambda + sqrt V)
//	theta <- theta - h G gU + h T Gamma + sqrt(2 h T G) xi,    xi ~ N(0, 1)
//
// It targets exp(-U/T) with GammaFrozen, up to SGLD's discretisation bias at the step size h G; with GammaNone the correlation of G with
// theta within about 1/(1 - Alpha) steps biases it further.
type PSGLD struct {
	Alpha    float64 // memory of V, in [0, 1)
	Lambda   float64 // bounds G by 1/Lambda
	Gamma    Gamma
	FreezeAt int // the step at which GammaFrozen stops adapting V; 0 with GammaNone
}

// Name implements Sampler.
func (PSGLD) Name() string { return "psgld" }

// Validate implements Sampler.
func (p PSGLD) Validate() error {
	switch {
	case !(p.Alpha >= 0 && p.Alpha < 1):
		return errors.Errorf("langevin: psgld: Alpha is %v, wants 0 <= Alpha < 1", p.Alpha)
	case !(p.Lambda > 0 && p.Lambda < math.Inf(1)):
		return errors.Errorf("langevin: psgld: Lambda is %v, wants a positive number", p.Lambda)
	case p.Gamma == GammaNone && p.FreezeAt != 0:
		return errors.Errorf("langevin: psgld: FreezeAt is %d with Gamma %q, which never freezes", p.FreezeAt, p.Gamma)
	case p.Gamma == GammaFrozen && (p.FreezeAt < 1 || p.FreezeAt > math.MaxInt32):
		return errors.Errorf("langevin: psgld: FreezeAt is %d, wants 1 to %d: V needs a step to be known", p.FreezeAt, math.MaxInt32)
	case p.Gamma != GammaNone && p.Gamma != GammaFrozen:
		return errors.Errorf("langevin: psgld: Gamma is %q, wants %q or %q", p.Gamma, GammaNone, GammaFrozen)
	}
	return nil
}

// Update implements Sampler.
func (p PSGLD) Update(b *graph.Builder, f Force, parameter, gradient *graph.Node) *graph.Node {
	update := psgldUpdate{psgld: p, dataSize: f.DataSize, prior: f.Prior, stream: b.Stream()}
	second := b.State(f.Name+".second moment", nil, graph.ShapeOf(parameter)...)
	return b.Apply(update, parameter, gradient, second, f.Rates, f.Temperatures, b.Header())
}

// psgldUpdate is PSGLD's move of w and V: w, dw and V of w's shape, rates and temperatures by step, header -> statistics, see
// op.UpdateShape.
type psgldUpdate struct {
	psgld    PSGLD
	dataSize int
	prior    Prior
	stream   uint16
}

func (psgldUpdate) Name() string   { return "psgld update" }
func (psgldUpdate) Updates() []int { return []int{0, 2} }

func (u psgldUpdate) Shape(in []tensor.Shape) (tensor.Shape, error) {
	return op.UpdateShape(in, 1, 2)
}

func (u psgldUpdate) Lower(l *graph.Lowering) {
	n := l.Shapes[0].Elements()
	host := graph.Pick(l, op.UpdateHost[float32](n, psgldTile[float32](u)), op.UpdateHost[float64](n, psgldTile[float64](u)))
	l.Emit("psgld_update", n, host, append([]tensor.Argument{
		l.Out(), l.InOut(0), l.In(1), l.InOut(2), l.In(3), l.In(4), l.In(5), tensor.Int(n), tensor.Int(l.Shapes[3][0]),
		tensor.Uint(uint32(u.stream)), tensor.Real(l.DType, u.psgld.Alpha), tensor.Real(l.DType, u.psgld.Lambda), tensor.Int(u.freezeAt()),
	}, u.prior.arguments(l.DType, u.dataSize)...)...)
}

// freezeAt is the step from which V stays; a step that no run reaches when it never does.
func (u psgldUpdate) freezeAt() int {
	if u.psgld.Gamma == GammaFrozen {
		return u.psgld.FreezeAt
	}
	return math.MaxInt32
}

func psgldTile[T float32 | float64](u psgldUpdate) func(a *tensor.Args, lo, hi int) float64 {
	slope := slopeOf[T](u.prior, u.dataSize)
	lambda := T(u.psgld.Lambda)
	return func(a *tensor.Args, lo, hi int) float64 {
		header := tensor.Slice[uint64](a, 6)
		rate, temperature := op.Entry(tensor.Slice[T](a, 4), header), op.Entry(tensor.Slice[T](a, 5), header)
		scale := T(noiseScale(float64(rate)/float64(u.dataSize), float64(temperature), 1))
		keep := T(u.keep(header[graph.HeaderStep]))
		w, dw, second := tensor.Slice[T](a, 1)[lo:hi], tensor.Slice[T](a, 2)[lo:hi], tensor.Slice[T](a, 3)[lo:hi]
		address := op.AddressOf(header, u.stream)
		var gradients, roots [random.BlockSize]T
		var z [random.BlockSize]float32
		statistic := 0.0
		for from := 0; from < len(w); from += random.BlockSize {
			w, dw, v := w[from:min(from+random.BlockSize, len(w))], dw[from:], second[from:]
			g := gradients[:len(w)]
			slope.fill(g, w, dw)
			statistic += virial(w, g)
			v = v[:len(w)]
			for i, theta := range w {
				v[i] = T(keep*v[i]) + T(T((1-keep)*g[i])*g[i])
				precondition := 1 / (lambda + root(v[i]))
				w[i] = op.Descend(theta, rate, T(precondition*g[i]))
				roots[i] = root(precondition)
			}
			if temperature == 0 {
				continue
			}
			random.NormalBlock(address, (lo+from)/random.BlockSize, &z)
			// sqrt(2 h T G) is noiseScale(h, T, 1) sqrt(G): G differs from element to element.
			for i := range w {
				w[i] += T(T(scale*roots[i]) * T(z[i]))
			}
		}
		return statistic
	}
}

// keep is how much of V stays in a step.
func (u psgldUpdate) keep(step uint64) float64 {
	switch {
	case step >= uint64(u.freezeAt()):
		return 1
	case step == 0:
		return 0
	default:
		return u.psgld.Alpha
	}
}

func root[T float32 | float64](x T) T { return T(math.Sqrt(float64(x))) }
