package main

import (
	_ "embed"
	"slices"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/cuda/kernels"
	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/graph/op"
	"github.com/pollen-ml/pollen/langevin"
	"github.com/pollen-ml/pollen/tensor"
	"github.com/pollen-ml/pollen/tensor/random"
)

//go:generate go run ../../cuda/kernels/generate leimkuhler.cu

//go:embed leimkuhler.ptx
var ptx string

// Kernels are added before a GPU is opened. A sampler for the CPU only needs neither this nor the
// two files leimkuhler.cu and leimkuhler.ptx.
func init() {
	if err := kernels.Add("leimkuhler.ptx", ptx); err != nil {
		panic(err)
	}
}

// LeimkuhlerMatthews is the method of Leimkuhler and Matthews (Rational construction of stochastic
// numerical methods for molecular sampling, 2013), SGLD whose noise is an average of the normals of
// this step and of the one before:
//
//	theta <- theta - h gU + sqrt(2 h T) ((1 - c) xi + c xi'),    xi ~ N(0, 1),    c = Carry
//
// where xi' is the xi of the step before. The paper has c = 1/2; c = 0 is SGLD.
//
// A sampler's comment states what it targets and its bias. This one targets exp(-U/T). On a
// quadratic U of curvature k the chain has the variance
//
//	T/k (1 - 2 h k c (1 - c))/(1 - h k/2)
//
// which is exact for c = 1/2, at any stable h. The minibatch's noise adds h^2 Var(gU) to the
// variance of each step, which is not corrected. At T = 0 it is optimizers.SGD with the rate h N.
type LeimkuhlerMatthews struct {
	Carry float64 // c, the part of a step's noise that comes from the step before: 0 to 1/2
}

// These lines fail to compile when a method is missing. EffectiveStepSizer is optional. A sampler
// whose preconditioner adapts during burn-in would be a langevin.Freezer, too.
var (
	_ langevin.Sampler            = LeimkuhlerMatthews{}
	_ langevin.EffectiveStepSizer = LeimkuhlerMatthews{}
)

// Name implements langevin.Sampler. It is the name in the literature, for titles and errors; what a
// user writes after --method is the name given to bayes.Register.
func (LeimkuhlerMatthews) Name() string { return "Leimkuhler-Matthews" }

// Validate implements langevin.Sampler. It refuses attributes that are out of range, NaN included:
// hence !(in range) instead of (out of range).
func (s LeimkuhlerMatthews) Validate() error {
	if !(s.Carry >= 0 && s.Carry <= 0.5) {
		return errors.Errorf("leimkuhler: Carry must be 0 to 0.5, got %v", s.Carry)
	}
	return nil
}

// EffectiveStepSize implements langevin.EffectiveStepSizer: in the long run the chain moves as SGLD
// does at h, because the coefficients of xi and xi' add up to 1.
func (LeimkuhlerMatthews) EffectiveStepSize(_ *graph.Session, _ int, _ string, n int, h float64) ([]float64, error) {
	return slices.Repeat([]float64{h}, n), nil
}

// Update implements langevin.Sampler. It is called once for each parameter of the network, while
// the graph is built, and attaches the op that moves the parameter in each step.
//
// The op's inputs are all that may differ between chains or steps; what is constant is a field of
// the op. A State is memory that belongs to the chain: it is kept in checkpoints, and each chain of
// a session has its own. Its name begins with the parameter's.
func (s LeimkuhlerMatthews) Update(b *graph.Builder, in langevin.UpdateInputs, parameter, gradient *graph.Node) *graph.Node {
	update := leimkuhlerUpdate{carry: s.Carry, dataSize: in.DataSize, prior: in.Prior, stream: b.Stream()}
	before := b.State(in.Name+".noise before", normals, graph.ShapeOf(parameter)...)
	return b.Apply(update, parameter, gradient, before, in.Rates, in.Temperatures, b.Header())
}

// normals is the noise before the first step. Nothing else uses the addresses of that step.
func normals(seed uint64, chain uint32, stream uint16, _ tensor.Shape, values []float64) {
	random.Normals(values, 0, random.Address{Seed: seed, Chain: chain, Step: random.MaxStep, Stream: stream})
}

// leimkuhlerUpdate is the op. The convention for its comment is inputs -> outputs: w, dw and the
// noise before of w's shape, rates and temperatures by step, header -> statistics, one for each
// tile of parameters, see op.UpdateShape.
//
// Its fields must be comparable: two ops with equal fields do the same.
type leimkuhlerUpdate struct {
	carry    float64
	dataSize int
	prior    langevin.Prior
	stream   uint16 // of xi; every parameter has its own
}

// Name implements graph.Op.
func (leimkuhlerUpdate) Name() string { return "leimkuhler update" }

// Updates are the inputs that the op overwrites: w and the noise before.
func (leimkuhlerUpdate) Updates() []int { return []int{0, 2} }

// Shape implements graph.Op: one state, two tables.
func (leimkuhlerUpdate) Shape(in []tensor.Shape) (tensor.Shape, error) {
	return op.UpdateShape(in, 1, 2)
}

// Lower implements graph.Op. It emits one launch: the kernel's name without _f32 or _f64, its grid,
// the host function, and the arguments in the order in which leimkuhler.cu declares them. Each
// buffer is marked Out, In or InOut: devices order launches by these marks. Attributes are passed
// as float64.
func (u leimkuhlerUpdate) Lower(l *graph.Lowering) {
	n := l.Shapes[0].Elements()
	arguments := []tensor.Argument{
		l.Out(), l.InOut(0), l.In(1), l.InOut(2), // statistics, w, dw, noise before
		l.In(3), l.In(4), l.In(5), // TABLES: rates, temperatures, header
		tensor.Int(n),
		tensor.Int(l.Shapes[3][0]), tensor.Int(l.Shapes[4][0]), // ENTRIES: the lengths of the tables
		tensor.Uint(uint32(u.stream)), tensor.Float(tensor.Float64, u.carry),
	}
	arguments = append(arguments, u.prior.KernelArguments(l.DType, u.dataSize)...) // PRIOR
	host := op.UpdateHost(l, n, u, leimkuhlerTile[float32], leimkuhlerTile[float64])
	l.Emit("leimkuhler_update", op.UpdateGrid(n), host, arguments...)
}

// leimkuhlerTile is the host's side: it moves the parameters from lo to hi, and returns their
// statistic, the sum of theta * g, for the run's temperatures. It must not allocate.
//
// T(a*b) around products keeps the compiler from fusing a product with a sum into one instruction,
// which rounds once instead of twice on some processors: the bits would depend on the machine.
func leimkuhlerTile[T float32 | float64](u leimkuhlerUpdate, a *tensor.Args, lo, hi int) (statistic float64) {
	header := tensor.Slice[uint64](a, 6)
	rate, temperature := op.Entry(tensor.Slice[T](a, 4), header), op.Entry(tensor.Slice[T](a, 5), header)
	h := float64(rate) / float64(u.dataSize)                    // the rate is for the mean loss, U/N
	scale := T(langevin.NoiseScale(h, float64(temperature), 1)) // sqrt(2 h T), computed nowhere else
	w, dw := tensor.Slice[T](a, 1)[lo:hi], tensor.Slice[T](a, 2)[lo:hi]
	before := tensor.Slice[T](a, 3)[lo:hi]
	carry, fresh := T(u.carry), T(1-u.carry)
	var gradients [random.BlockSize]T
	var xi [random.BlockSize]float32
	for from := 0; from < len(w); from += random.BlockSize {
		to := min(from+random.BlockSize, len(w))
		w, before, g := w[from:to], before[from:to], gradients[:to-from]
		// dw is the gradient of the mean loss; g, of U/N, has the prior's part, too.
		statistic += langevin.Gradient(u.prior, u.dataSize, g, w, dw[from:to])
		// Noise is a function of seed, chain, step, stream and element. The same numbers come out
		// wherever and in whatever order tiles run. A tile begins at a multiple of BlockSize. At
		// temperature 0, which cyclical sampling has at times, xi is 0, as on a GPU.
		if temperature > 0 {
			random.NormalBlock(op.AddressOf(header, u.stream), (lo+from)/random.BlockSize, len(w), &xi)
		}
		for i := range w {
			noise := T(fresh*T(xi[i])) + T(carry*before[i])
			w[i] = op.Descend(w[i], rate, g[i]) + T(scale*noise)
			before[i] = T(xi[i])
		}
	}
	return statistic
}
