package langevin

import (
	"math"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/graph/op"
	"github.com/pollen-ml/pollen/tensor"
	"github.com/pollen-ml/pollen/tensor/random"
)

// FisherSGLD is SGLD preconditioned by the diagonal of the Fisher information (Palacci and Hess
// 2018), per element. With the gradient of the mean loss g = gU/N:
//
//	V <- a V + (1 - a) g^2,    a = min(Alpha, t/(t+1)) at step t = 0, 1 ..., 1 from FreezeAt on
//	G  = 1 / (Damping + V)
//	theta <- theta - h G gU + sqrt(2 h T G) xi
//
// g is the gradient of a whole minibatch: near a mode V is the empirical Fisher information of one
// example divided by the batch size, and the step size for exact natural gradients must be
// multiplied by it. From step FreezeAt on, which must lie within burn-in, it targets exp(-U/T) up
// to SGLD's bias at the step size h G. Before, the adaptation biases it. With a Damping far below
// V, elements whose first gradient happens to be small jump far, and return slowly.
type FisherSGLD struct {
	Alpha    float64 // memory of V, in [0, 1); usually 0.99
	Damping  float64 // bounds G by 1/Damping; usually 0.001
	FreezeAt int     // the step at which V stops adapting
}

// Name implements Sampler.
func (FisherSGLD) Name() string { return "fsgld" }

// EffectiveStepSize implements EffectiveStepSizer.
func (f FisherSGLD) EffectiveStepSize(s *graph.Session, chain int, parameter string, n int, h float64) ([]float64, error) {
	return preconditionedStepSize(s, chain, parameter, n, h, func(v float64) float64 { return 1 / (f.Damping + v) })
}

// Validate implements Sampler.
func (f FisherSGLD) Validate() error { return checkFreezing(f.Name(), f.Alpha, f.Damping, f.FreezeAt) }

// checkFreezing checks the attributes that all samplers with a frozen preconditioner have.
func checkFreezing(name string, alpha, damping float64, freezeAt int) error {
	switch {
	case !(alpha >= 0 && alpha < 1):
		return errors.Errorf("langevin: %s: Alpha must be at least 0 and below 1, got %v", name, alpha)
	case !positive(damping):
		return errors.Errorf("langevin: %s: Damping must be positive, got %v", name, damping)
	case freezeAt < 1 || freezeAt > math.MaxInt32:
		return errors.Errorf("langevin: %s: FreezeAt must be 1 to %d, got %d: the Fisher information is estimated from at least one step",
			name, math.MaxInt32, freezeAt)
	}
	return nil
}

// FreezeStep implements Freezer.
func (f FisherSGLD) FreezeStep() int { return f.FreezeAt }

// Freeze implements Freezer.
func (f FisherSGLD) Freeze(step int) Sampler {
	f.FreezeAt = step
	return f
}

// Update implements Sampler.
func (f FisherSGLD) Update(b *graph.Builder, inputs UpdateInputs, parameter, gradient *graph.Node) *graph.Node {
	frozen := PSGLD{Alpha: f.Alpha, Lambda: f.Damping, Gamma: GammaFrozen, FreezeAt: f.FreezeAt}
	update := fisherUpdate{psgldUpdate{psgld: frozen, dataSize: inputs.DataSize, prior: inputs.Prior, stream: b.Stream()}}
	second := b.State(inputs.Name+secondMomentSuffix, nil, graph.ShapeOf(parameter)...)
	return b.Apply(update, parameter, gradient, second, inputs.Rates, inputs.Temperatures, b.Header())
}

// fisherUpdate is psgldUpdate with FisherSGLD's G; Lambda holds the damping.
type fisherUpdate struct{ psgldUpdate }

func (fisherUpdate) Name() string { return "fsgld update" }

func (u fisherUpdate) Lower(l *graph.Lowering) {
	n := l.Shapes[0].Elements()
	l.Emit("fsgld_update", op.UpdateGrid(n), op.UpdateHost(l, n, u, fisherTile[float32], fisherTile[float64]), u.arguments(l)...)
}

// fisherTile performs a step of the elements lo to hi, with G = 1/(lambda + V) for the running mean
// V of squared gradients: theta <- theta - rate G g + scale sqrt(G) xi.
func fisherTile[T float32 | float64](u fisherUpdate, a *tensor.Args, lo, hi int) float64 {
	s := preconditionedTileOf[T](u.psgldUpdate, a, 4, lo, hi)
	var gradients [random.BlockSize]T
	var z [random.BlockSize]float32
	for from := 0; from < len(s.w); from += random.BlockSize {
		w, v, g := s.nextBlock(from, &gradients, &z)
		for i, theta := range w {
			v[i] = T(s.keep*v[i]) + T(T((1-s.keep)*g[i])*g[i])
			precondition := 1 / (s.lambda + v[i])
			root := T(math.Sqrt(float64(precondition)))
			w[i] = op.Descend(theta, s.rate, T(precondition*g[i])) + T(T(s.scale*root)*T(z[i]))
		}
	}
	return s.virial
}
