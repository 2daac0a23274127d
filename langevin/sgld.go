package langevin

import (
	"math"
	"slices"

	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/graph/op"
	"github.com/pollen-ml/pollen/tensor"
	"github.com/pollen-ml/pollen/tensor/kernel"
	"github.com/pollen-ml/pollen/tensor/random"
)

// SGLD is stochastic gradient Langevin dynamics (Welling and Teh 2011, equation 4, with h =
// epsilon/2):
//
//	theta <- theta - h gU + sqrt(2 h T) xi
//
// It targets exp(-U/T). On a quadratic U of curvature k the chain has the variance T/(k (1 -
// hk/2)), a relative excess of hk/2, and diverges when hk exceeds 2. The noise of the minibatch
// adds h^2 Var(gU) to the variance of each step. At T = 0 it is optimizers.SGD with the rate h N,
// bit for bit.
//
// SGLD is the file to read first: the other samplers have the same parts.
type SGLD struct{}

// Name implements Sampler.
func (SGLD) Name() string { return "sgld" }

// EffectiveStepSize implements EffectiveStepSizer.
func (SGLD) EffectiveStepSize(_ *graph.Session, _ int, _ string, n int, h float64) ([]float64, error) {
	return slices.Repeat([]float64{h}, n), nil
}

// Validate implements Sampler.
func (SGLD) Validate() error { return nil }

// Update implements Sampler.
func (SGLD) Update(b *graph.Builder, in UpdateInputs, parameter, gradient *graph.Node) *graph.Node {
	update := sgldUpdate{dataSize: in.DataSize, prior: in.Prior, stream: b.Stream()}
	return b.Apply(update, parameter, gradient, in.Rates, in.Temperatures, b.Header())
}

// sgldUpdate is the op of SGLD's step. Inputs: w, dw of w's shape, rates and temperatures by step,
// header. Output: statistics, one per tile, see op.UpdateShape. Attributes that are the same in
// every step are its fields.
type sgldUpdate struct {
	dataSize int
	prior    Prior
	stream   uint16
}

func (sgldUpdate) Name() string   { return "sgld update" }
func (sgldUpdate) Updates() []int { return []int{0} }

func (u sgldUpdate) Shape(in []tensor.Shape) (tensor.Shape, error) {
	return op.UpdateShape(in, 0, 2)
}

// Lower emits one launch, with the host function and, in the order of cuda/kernels/sgld.cu, the
// arguments of the GPU kernel sgld_update.
func (u sgldUpdate) Lower(l *graph.Lowering) {
	n := l.Shapes[0].Elements()
	l.Emit("sgld_update", op.UpdateGrid(n), op.UpdateHost(l, n, u, sgldTile[float32], sgldTile[float64]), append([]tensor.Argument{
		l.Out(), l.InOut(0), l.In(1), l.In(2), l.In(3), l.In(4), tensor.Int(n), tensor.Int(l.Shapes[2][0]),
		tensor.Int(l.Shapes[3][0]), tensor.Uint(uint32(u.stream)),
	}, u.prior.KernelArguments(l.DType, u.dataSize)...)...)
}

// sgldTile moves the parameters lo to hi and returns the sum of theta * g over them, from which
// runs compute the configurational temperature. It works through blocks of random.BlockSize
// elements: the noise of a block is a function of seed, chain, step, stream and block, whichever
// thread computes it.
//
// A linear prior (flat or Gaussian) takes one pass over memory, any other a pass for the gradient
// and one for the step.
func sgldTile[T float32 | float64](u sgldUpdate, a *tensor.Args, lo, hi int) float64 {
	term, header := priorTermOf[T](u.prior, u.dataSize), tensor.Slice[uint64](a, 5)
	rate, temperature := op.Entry(tensor.Slice[T](a, 3), header), op.Entry(tensor.Slice[T](a, 4), header)
	// The table holds the rate h N, which multiplies g, the gradient of U/N. The noise needs h.
	scale := T(NoiseScale(float64(rate)/float64(u.dataSize), float64(temperature), 1))
	w, dw := tensor.Slice[T](a, 1)[lo:hi], tensor.Slice[T](a, 2)[lo:hi]
	address := op.AddressOf(header, u.stream)
	var gradients [random.BlockSize]T
	var z [random.BlockSize]float32
	statistic := 0.0
	for from := 0; from < len(w); from += random.BlockSize {
		w, dw := w[from:min(from+random.BlockSize, len(w))], dw[from:]
		if temperature > 0 {
			random.NormalBlock(address, (lo+from)/random.BlockSize, len(w), &z)
		}
		// One pass over memory: the decay, the step and the statistic.
		if term.linear() {
			statistic += kernel.DecayedSGLD(w, dw[:len(w)], z[:], term.strength, rate, scale)
			continue
		}
		g := gradients[:len(w)]
		statistic += term.fill(g, w, dw)
		kernel.SGLD(w, g, z[:], rate, scale)
	}
	return statistic
}

// NoiseScale returns sqrt(2 h T G), the standard deviation of the noise that balances a drift of -h
// G gU. Only this function computes it, so that a factor cannot be wrong in a single sampler.
func NoiseScale(h, temperature, preconditioner float64) float64 {
	return math.Sqrt(2 * h * temperature * preconditioner)
}
