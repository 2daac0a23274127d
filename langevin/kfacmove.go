package langevin

import (
	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/graph/op"
	"github.com/pollen-ml/pollen/tensor"
	"github.com/pollen-ml/pollen/tensor/random"
)

// posteriorGradient is the gradient of U/N: w, dw [...] -> g [...], see priorTerm.
type posteriorGradient struct {
	Prior    Prior
	DataSize int
}

func (posteriorGradient) Name() string { return "gradient of the posterior" }

func (posteriorGradient) Shape(in []tensor.Shape) (tensor.Shape, error) { return alike(in, 2) }

func (p posteriorGradient) Lower(l *graph.Lowering) {
	n := l.Shape.Elements()
	host := tensor.Rows(n, 1, graph.Pick(l, posteriorGradientRows[float32](p), posteriorGradientRows[float64](p)))
	l.Emit("posterior_gradient_fwd", tensor.Threads(n), host,
		append([]tensor.Argument{l.Out(), l.In(0), l.In(1), tensor.Int(n)}, p.Prior.KernelArguments(l.DType, p.DataSize)...)...)
}

// posteriorGradientRows is the host's loop of posteriorGradient.
func posteriorGradientRows[T float32 | float64](p posteriorGradient) func(a *tensor.Args, lo, hi int) {
	slope := priorTermOf[T](p.Prior, p.DataSize)
	return func(a *tensor.Args, lo, hi int) {
		slope.fill(tensor.Slice[T](a, 0)[lo:hi], tensor.Slice[T](a, 1)[lo:hi], tensor.Slice[T](a, 2)[lo:hi])
	}
}

// whitenedMove is SGLD's move in coordinates in which G is the identity, y = -h N g + sqrt(2 h T)
// xi: g [...], rates and temperatures by step, header -> y [...].
type whitenedMove struct {
	DataSize int
	Stream   uint16
}

func (whitenedMove) Name() string { return "whitened move" }

func (whitenedMove) Shape(in []tensor.Shape) (tensor.Shape, error) {
	if len(in) != 4 || len(in[1]) != 1 || len(in[2]) != 1 || len(in[3]) != 1 {
		return nil, errors.Errorf("must have a gradient, two tables and the header, got shapes %v", in)
	}
	return in[0], nil
}

func (m whitenedMove) Lower(l *graph.Lowering) {
	n := l.Shape.Elements()
	host := tensor.Rows(n, 1, graph.Pick(l, whitenedStep[float32](m), whitenedStep[float64](m)))
	l.Emit("whitened_move_fwd", tensor.Vec4(n), host, l.Out(), l.In(0), l.In(1), l.In(2), l.In(3), tensor.Int(n), tensor.Int(l.Shapes[1][0]),
		tensor.Int(l.Shapes[2][0]), tensor.Uint(uint32(m.Stream)), tensor.Int(m.DataSize))
}

// whitenedStep is the host's loop of whitenedMove. It begins at multiples of random.BlockSize,
// where blocks of noise begin.
func whitenedStep[T float32 | float64](m whitenedMove) func(a *tensor.Args, lo, hi int) {
	return func(a *tensor.Args, lo, hi int) {
		header := tensor.Slice[uint64](a, 4)
		rate, temperature := op.Entry(tensor.Slice[T](a, 2), header), op.Entry(tensor.Slice[T](a, 3), header)
		scale := T(NoiseScale(float64(rate)/float64(m.DataSize), float64(temperature), 1))
		address := op.AddressOf(header, m.Stream)
		var z [random.BlockSize]float32
		for ; lo < hi; lo += random.BlockSize {
			to := min(lo+random.BlockSize, hi)
			y := tensor.Slice[T](a, 0)[lo:to]
			if temperature > 0 {
				random.NormalBlock(address, lo/random.BlockSize, len(y), &z)
			}
			for i, g := range tensor.Slice[T](a, 1)[lo:to] {
				y[i] = T(scale*T(z[i])) - T(rate*g)
			}
		}
	}
}

// moveUpdate is w <- w + move: w, the gradient g that the move followed, and move, all of w's shape
// -> statistics, see op.UpdateShape.
type moveUpdate struct{}

func (moveUpdate) Name() string   { return "move" }
func (moveUpdate) Updates() []int { return []int{0} }

func (moveUpdate) Shape(in []tensor.Shape) (tensor.Shape, error) {
	shape, err := alike(in, 3)
	if err != nil {
		return nil, err
	}
	return tensor.Shape{op.UpdateTiles(shape.Elements())}, nil
}

func (u moveUpdate) Lower(l *graph.Lowering) {
	n := l.Shapes[0].Elements()
	l.Emit("move_update", op.UpdateGrid(n), op.UpdateHost(l, n, u, moveTile[float32], moveTile[float64]), l.Out(), l.InOut(0), l.In(1), l.In(2), tensor.Int(n))
}

// moveTile returns the statistic of w before the move, as all updates do.
func moveTile[T float32 | float64](_ moveUpdate, a *tensor.Args, lo, hi int) float64 {
	w := tensor.Slice[T](a, 1)[lo:hi]
	statistic := virial(w, tensor.Slice[T](a, 2)[lo:hi])
	for i, v := range tensor.Slice[T](a, 3)[lo:hi] {
		w[i] += v
	}
	return statistic
}

// alike returns the shape of inputs that must be count in number and equal in shape.
func alike(in []tensor.Shape, count int) (tensor.Shape, error) {
	if len(in) != count {
		return nil, errors.Errorf("must have %d inputs, got %d", count, len(in))
	}
	for _, shape := range in {
		if !shape.Equal(in[0]) {
			return nil, errors.Errorf("must have inputs of equal shapes, got %v", in)
		}
	}
	return in[0], nil
}
