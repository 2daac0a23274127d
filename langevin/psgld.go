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

// Gamma selects how PSGLD treats its term h T Gamma, where Gamma = dG/dtheta.
type Gamma string

// The treatments of Gamma.
const (
	// GammaNone leaves the term out while G adapts, as the paper's experiments do. The samples are
	// then biased at any h.
	GammaNone Gamma = "none"
	// GammaFrozen freezes V and G at step FreezeAt, the end of burn-in, from where Gamma is exactly
	// 0.
	GammaFrozen Gamma = "frozen"
	// GammaHutchinson estimates Gamma without bias from one Hessian-vector product with random
	// signs in each step, which costs two more gradients. The noise of the estimate moves theta by
	// a variance of about (h T s)^2/(Lambda + sqrt V)^4, where s^2 is the sum of the squares of the
	// row of H without H_ii. It is small compared with the noise of xi where h T s^2 << 2 (Lambda +
	// sqrt V)^3. At T = 1, h = 2e-6, Lambda = 1e-5 and Alpha = 0.99, a perceptron 784-8-10 on 1000
	// images of MNIST in one batch had the temperature 1.03, with GammaNone 1.26, with GammaFrozen
	// 1.06.
	GammaHutchinson Gamma = "hutchinson"
	// GammaExact computes Gamma from the Hessian's diagonal, for at most 64 parameters.
	GammaExact Gamma = "exact"
)

// PSGLD is SGLD preconditioned like RMSProp (Li, Chen, Carlson and Carin 2016, algorithm 1), per
// element. With the gradient of the mean loss g = gU/N:
//
//	V <- a V + (1 - a) g^2,    a = min(Alpha, t/(t+1)) at step t = 0, 1 ...
//	G  = 1 / (Lambda + sqrt V)
//	theta <- theta - h G gU + h T Gamma + sqrt(2 h T G) xi
//
// With GammaHutchinson and GammaExact, where H_ii is the diagonal of the Hessian of the minibatch's
// U/N,
//
//	Gamma = -dV / (2 sqrt V (Lambda + sqrt V)^2),    dV <- a dV + (1 - a) 2 g H_ii
//
// dV sums the derivatives of all gradients that V remembers, not only of the present one; at Alpha
// = 0 Gamma is exactly dG/dtheta. V is the plain mean of all squares until there are 1/(1 - Alpha)
// of them, and until then Gamma is left out. The paper's V, which starts at 0, is too small at
// first, and Gamma, which is proportional to H_ii/V, could throw theta far away.
//
// It targets exp(-U/T): with GammaFrozen up to SGLD's bias at the step size h G, with
// GammaHutchinson and GammaExact as h goes to 0. With GammaNone, G is correlated with theta over
// about 1/(1 - Alpha) steps, which adds a bias whatever h is. Unless G is frozen it is also
// correlated with the noise of the step's own minibatch, which biases the drift by a fraction of
// order 1 - Alpha.
type PSGLD struct {
	Alpha    float64 // memory of V, in [0, 1); usually 0.99
	Lambda   float64 // bounds G by 1/Lambda; usually 1e-5
	Gamma    Gamma   // usually GammaFrozen
	FreezeAt int     // the step at which GammaFrozen stops adapting V; 0 with the others

	// Distance is the displacement from theta for the central differences of gradients that
	// GammaHutchinson and GammaExact take. 0 stands for 2^-8 in float32 and 2^-17 in float64, which
	// suit parameters of order one. It must be 0 with the others.
	Distance float64
}

// Name implements Sampler.
func (PSGLD) Name() string { return "psgld" }

// EffectiveStepSize implements EffectiveStepSizer.
func (p PSGLD) EffectiveStepSize(s *graph.Session, chain int, parameter string, n int, h float64) ([]float64, error) {
	return preconditionedStepSize(s, chain, parameter, n, h, func(v float64) float64 { return 1 / (p.Lambda + math.Sqrt(v)) })
}

// Validate implements Sampler.
func (p PSGLD) Validate() error { return p.check(p.Name()) }

// check is Validate for a sampler of the given name that has the same G.
func (p PSGLD) check(name string) error {
	switch {
	case !(p.Alpha >= 0 && p.Alpha < 1):
		return errors.Errorf("langevin: %s: Alpha must be at least 0 and below 1, got %v", name, p.Alpha)
	case !positive(p.Lambda):
		return errors.Errorf("langevin: %s: Lambda must be positive, got %v", name, p.Lambda)
	case p.Gamma != GammaFrozen && p.FreezeAt != 0:
		return errors.Errorf("langevin: %s: FreezeAt must be 0 with Gamma %q, which never freezes, got %d", name, p.Gamma, p.FreezeAt)
	case p.Gamma == GammaFrozen && (p.FreezeAt < 1 || p.FreezeAt > math.MaxInt32):
		return errors.Errorf("langevin: %s: FreezeAt must be 1 to %d, got %d: V is estimated from at least one step", name, math.MaxInt32, p.FreezeAt)
	case p.Gamma != GammaNone && p.Gamma != GammaFrozen && !p.Gamma.needsCurvature():
		return errors.Errorf("langevin: %s: Gamma must be %q, %q, %q or %q, got %q", name, GammaNone, GammaFrozen, GammaHutchinson, GammaExact, p.Gamma)
	case p.Gamma.needsCurvature() && !(p.Distance >= 0 && p.Distance < math.Inf(1)):
		return errors.Errorf("langevin: %s: Distance must be positive, or 0 for the default, got %v", name, p.Distance)
	case !p.Gamma.needsCurvature() && p.Distance != 0:
		return errors.Errorf("langevin: %s: Distance must be 0 with Gamma %q, which needs no curvature, got %v", name, p.Gamma, p.Distance)
	}
	return nil
}

// FreezeStep implements Freezer.
func (p PSGLD) FreezeStep() int { return p.FreezeAt }

// Freeze implements Freezer.
func (p PSGLD) Freeze(step int) Sampler {
	if p.Gamma == GammaFrozen {
		p.FreezeAt = step
	}
	return p
}

// Update implements Sampler.
func (p PSGLD) Update(b *graph.Builder, in UpdateInputs, parameter, gradient *graph.Node) *graph.Node {
	if p.Gamma.needsCurvature() {
		b.Fail(p.errNoCurvature(in.Name))
		return nil
	}
	update := psgldUpdate{psgld: p, dataSize: in.DataSize, prior: in.Prior, stream: b.Stream()}
	second := b.State(in.Name+secondMomentSuffix, nil, graph.ShapeOf(parameter)...)
	return b.Apply(update, parameter, gradient, second, in.Rates, in.Temperatures, b.Header())
}

// psgldUpdate is the op that moves w and V. Inputs: w, dw and V of w's shape, rates and
// temperatures by step, header. Output: statistics, see op.UpdateShape.
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
	l.Emit("psgld_update", op.UpdateGrid(n), op.UpdateHost(l, n, u, psgldTile[float32], psgldTile[float64]), u.arguments(l)...)
}

func (u psgldUpdate) arguments(l *graph.Lowering) []tensor.Argument {
	return append([]tensor.Argument{
		l.Out(), l.InOut(0), l.In(1), l.InOut(2), l.In(3), l.In(4), l.In(5),
		tensor.Int(l.Shapes[0].Elements()), tensor.Int(l.Shapes[3][0]), tensor.Int(l.Shapes[4][0]),
		tensor.Uint(uint32(u.stream)), tensor.Float(l.DType, u.psgld.Alpha), tensor.Float(l.DType, u.psgld.Lambda), tensor.Int(u.psgld.freezeAt()),
	}, u.prior.KernelArguments(l.DType, u.dataSize)...)
}

// freezeAt returns the step from which V stays constant, or a step that no run reaches.
func (p PSGLD) freezeAt() int {
	if p.Gamma == GammaFrozen {
		return p.FreezeAt
	}
	return math.MaxInt32
}

func psgldTile[T float32 | float64](u psgldUpdate, a *tensor.Args, lo, hi int) float64 {
	s := preconditionedTileOf[T](u, a, 4, lo, hi)
	var gradients [random.BlockSize]T
	var z [random.BlockSize]float32
	for from := 0; from < len(s.w); from += random.BlockSize {
		w, v, g := s.nextBlock(from, &gradients, &z)
		// sqrt(2 h T G) is NoiseScale(h, T, 1) sqrt(G), where G differs between elements.
		kernel.PSGLD(w, v, g, z[:], s.keep, s.lambda, s.rate, s.scale)
	}
	return s.virial
}

// preconditionedTile holds the data for updating a tile of parameters whose preconditioner is
// computed from V. Updates process it in blocks of random.BlockSize.
type preconditionedTile[T float32 | float64] struct {
	w, dw, v                  []T
	rate, scale, keep, lambda T
	h, temperature            float64
	term                      priorTerm[T]
	noise                     random.Address
	first                     int // number of the tile's first block, for the noise
	virial                    float64
}

// preconditionedTileOf reads a launch's arguments for the tile lo to hi: w, dw and V from argument
// 1 on, the tables and the header from argument rates on.
func preconditionedTileOf[T float32 | float64](u psgldUpdate, a *tensor.Args, rates, lo, hi int) preconditionedTile[T] {
	header := tensor.Slice[uint64](a, rates+2)
	rate, temperature := op.Entry(tensor.Slice[T](a, rates), header), op.Entry(tensor.Slice[T](a, rates+1), header)
	s := preconditionedTile[T]{
		w: tensor.Slice[T](a, 1)[lo:hi], dw: tensor.Slice[T](a, 2)[lo:hi], v: tensor.Slice[T](a, 3)[lo:hi],
		rate: rate, keep: memory[T](u.psgld.Alpha, u.psgld.freezeAt(), header[graph.HeaderStep]), lambda: T(u.psgld.Lambda),
		h: float64(rate) / float64(u.dataSize), temperature: float64(temperature),
		term: priorTermOf[T](u.prior, u.dataSize), noise: op.AddressOf(header, u.stream), first: lo / random.BlockSize,
	}
	s.scale = T(NoiseScale(s.h, s.temperature, 1))
	return s
}

// nextBlock prepares the block that begins at from: it fills in the gradients of U/N and, above
// temperature 0, the noise.
func (s *preconditionedTile[T]) nextBlock(from int, gradients *[random.BlockSize]T, z *[random.BlockSize]float32) (w, v, g []T) {
	to := min(from+random.BlockSize, len(s.w))
	w, v, g = s.w[from:to], s.v[from:to], gradients[:to-from]
	s.virial += s.term.fill(g, w, s.dw[from:])
	if s.temperature > 0 {
		random.NormalBlock(s.noise, s.first+from/random.BlockSize, len(w), z)
	}
	return w, v, g
}

// memory returns the fraction of V that a step keeps: t/(t+1) at step t = 0, 1 ... until that
// reaches alpha, which makes V the mean of all squares so far, and 1 from freezeAt on.
func memory[T float32 | float64](alpha float64, freezeAt int, step uint64) T {
	if step >= uint64(freezeAt) {
		return 1
	}
	return min(T(alpha), T(step)/T(step+1))
}
