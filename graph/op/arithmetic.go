package op

import (
	"math"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/tensor"
	"github.com/pollen-ml/pollen/tensor/kernel"
)

// Binary ops broadcast as NumPy does: shapes are aligned at their last axes, missing axes count as
// extent 1, and an operand of extent 1 on an axis is repeated along it. The gradient of an operand
// is summed over the axes on which it was repeated: broadcasting is a linear map, and its transpose
// is a sum. Source: NumPy user guide, Broadcasting.

// Add is y = a + b, elementwise with NumPy's broadcasting: a [...], b [...] -> y. A ReLU that
// follows is fused into it.
type Add struct{ relu bool }

// Subtract is y = a - b with NumPy's broadcasting: a [...], b [...] -> y.
type Subtract struct{}

// Multiply is y = a b with NumPy's broadcasting: a [...], b [...] -> y.
type Multiply struct{}

// Divide is y = a / b with NumPy's broadcasting: a [...], b [...] -> y.
type Divide struct{}

// Name implements graph.Op.
func (Add) Name() string { return "add" }

// Name implements graph.Op.
func (Subtract) Name() string { return "subtract" }

// Name implements graph.Op.
func (Multiply) Name() string { return "multiply" }

// Name implements graph.Op.
func (Divide) Name() string { return "divide" }

// Shape implements graph.Op.
func (Add) Shape(in []tensor.Shape) (tensor.Shape, error) { return broadcast(in) }

// Shape implements graph.Op.
func (Subtract) Shape(in []tensor.Shape) (tensor.Shape, error) { return broadcast(in) }

// Shape implements graph.Op.
func (Multiply) Shape(in []tensor.Shape) (tensor.Shape, error) { return broadcast(in) }

// Shape implements graph.Op.
func (Divide) Shape(in []tensor.Shape) (tensor.Shape, error) { return broadcast(in) }

// Lower implements graph.Op.
func (s Add) Lower(l *graph.Lowering) {
	if s.relu {
		lowerArithmetic(l, "add_relu", addRaised[float32], addRaised[float64])
		return
	}
	lowerArithmetic(l, "add", kernel.Add[float32], kernel.Add[float64])
}

func addRaised[T float32 | float64](y, a, b []T) {
	inCacheBlocks(0, len(y), func(lo, hi int) {
		kernel.Add(y[lo:hi], a[lo:hi], b[lo:hi])
		kernel.Raise(y[lo:hi], y[lo:hi], 0)
	})
}

// Fuse implements graph.Fuser.
func (s Add) Fuse(consumer graph.Op) (graph.Op, bool) {
	_, ok := consumer.(ReLU)
	return Add{relu: true}, ok && !s.relu
}

// Lower implements graph.Op.
func (Subtract) Lower(l *graph.Lowering) {
	lowerArithmetic(l, "subtract", kernel.Subtract[float32], kernel.Subtract[float64])
}

// Lower implements graph.Op.
func (Multiply) Lower(l *graph.Lowering) {
	for i := range l.Shapes {
		if rows, width := planesOf(l.Shape, l.Shapes[1-i]); rows >= fewestPlanes && width >= narrowestPlane && l.Shapes[i].Equal(l.Shape) {
			factors := l.Shapes[1-i].Elements()
			run := graph.Pick(l, multiplyPlanes[float32], multiplyPlanes[float64])(1+i, 2-i, width)
			host := tensor.RowTiles(rows, factors, width, run)
			if factors == rows {
				host = tensor.RowTiles(rows, 1, width, run)
				host.RowTile.Owns = func(int, *tensor.Buffer) bool { return true } // a factor, too, belongs to one plane
			}
			emitBroadcast(l, "multiply", host)
			return
		}
	}
	lowerArithmetic(l, "multiply", kernel.Multiply[float32], kernel.Multiply[float64])
}

// Lower implements graph.Op.
func (Divide) Lower(l *graph.Lowering) {
	lowerArithmetic(l, "divide", kernel.Divide[float32], kernel.Divide[float64])
}

// Planes are processed one by one, which takes a call for many of them instead of copies of each
// factor, if they have at least narrowestPlane elements, and if there are at least fewestPlanes,
// since no plane is split between threads.
const (
	narrowestPlane = 16
	fewestPlanes   = 16
)

// planesOf divides a broadcast output into planes in which an operand has a single number each, and
// returns their number and size; the size is 1 if there are none. If the operand is repeated along
// the first axes, its numbers are repeated for the planes.
func planesOf(shape, operand tensor.Shape) (rows, width int) {
	rows, width = 1, 1
	began := false
	for axis, extent := range shape {
		switch own := alignedExtent(operand, axis, len(shape)); {
		case extent == 1:
		case own == extent && width == 1:
			rows, began = rows*extent, true
		case own == 1 && began:
			width *= extent
		case own == 1:
			rows *= extent
		default:
			return 0, 1
		}
	}
	return rows, width
}

// multiplyPlanes returns the loop over planes lo to hi of an argument times the factors that are
// another one.
func multiplyPlanes[T float32 | float64](x, factors, width int) func(a *tensor.Args, lo, hi int) {
	return func(a *tensor.Args, lo, hi int) {
		by := tensor.Slice[T](a, factors)
		byImage(lo, hi, len(by), func(lo, hi, first int) {
			kernel.MultiplyPlanes(tensor.Slice[T](a, 0)[lo*width:hi*width], tensor.Slice[T](a, x)[lo*width:hi*width], by[first:][:hi-lo])
		})
	}
}

// Gradients implements graph.Differentiable.
func (Add) Gradients(b *graph.Builder, in []*graph.Node, _, dout *graph.Node) []*graph.Node {
	return []*graph.Node{unbroadcast(b, dout, in[0]), unbroadcast(b, dout, in[1])}
}

// Gradients implements graph.Differentiable: da = dout, db = -dout. It sums before it negates,
// because the sum may be much smaller.
func (Subtract) Gradients(b *graph.Builder, in []*graph.Node, _, dout *graph.Node) []*graph.Node {
	return []*graph.Node{unbroadcast(b, dout, in[0]), b.Apply(Negate{}, unbroadcast(b, dout, in[1]))}
}

// Gradients implements graph.Differentiable: da = dout b, db = dout a.
func (Multiply) Gradients(b *graph.Builder, in []*graph.Node, _, dout *graph.Node) []*graph.Node {
	return []*graph.Node{
		unbroadcast(b, b.Apply(Multiply{}, dout, in[1]), in[0]),
		unbroadcast(b, b.Apply(Multiply{}, dout, in[0]), in[1]),
	}
}

// Gradients implements graph.Differentiable: da = dout / b, db = -da y.
func (Divide) Gradients(b *graph.Builder, in []*graph.Node, y, dout *graph.Node) []*graph.Node {
	da := b.Apply(Divide{}, dout, in[1])
	return []*graph.Node{
		unbroadcast(b, da, in[0]),
		b.Apply(Negate{}, unbroadcast(b, b.Apply(Multiply{}, da, y), in[1])),
	}
}

// unbroadcast sums a gradient over the axes on which the operand was repeated, and gives it the
// operand's shape.
func unbroadcast(b *graph.Builder, gradient, operand *graph.Node) *graph.Node {
	want, have := graph.ShapeOf(operand), graph.ShapeOf(gradient)
	var repeated Axes
	for axis, extent := range have {
		if extent != alignedExtent(want, axis, len(have)) {
			repeated |= AxesOf(axis)
		}
	}
	if repeated != 0 {
		gradient = b.Apply(Sum{repeated}, gradient)
	}
	if !graph.ShapeOf(gradient).Equal(want) {
		gradient = b.Apply(ViewAs(want...), gradient)
	}
	return gradient
}

// broadcast returns the shape of the output of a binary op.
func broadcast(in []tensor.Shape) (tensor.Shape, error) {
	if err := checkRanks(in, -1, -1); err != nil {
		return nil, err
	}
	y := make(tensor.Shape, max(len(in[0]), len(in[1])))
	for axis := range y {
		a, b := alignedExtent(in[0], axis, len(y)), alignedExtent(in[1], axis, len(y))
		if a != b && a != 1 && b != 1 {
			return nil, errors.Errorf("extents, aligned at the last axis, must be equal or 1, got shapes %v and %v", in[0], in[1])
		}
		y[axis] = max(a, b)
	}
	return y, checkAxisCount(y)
}

// alignedExtent returns the extent of a shape on an axis of a broadcast output with the given
// number of axes.
func alignedExtent(shape tensor.Shape, axis, axes int) int {
	if axis -= axes - len(shape); axis >= 0 {
		return shape[axis]
	}
	return 1
}

// repeatWidth is the number of copies of a repeated operand that are made at a time.
const repeatWidth = 256

// lowerArithmetic emits stem_fwd for operands of equal shape, and otherwise stem_broadcast_fwd,
// whose further arguments are the extents and strides of both operands. Only the first is
// elementwise in memory, so that only it can be fused over row tiles.
func lowerArithmetic(l *graph.Lowering, stem string, f32 func(y, a, b []float32), f64 func(y, a, b []float64)) {
	n := l.Shape.Elements()
	a, b := operandRuns(l)
	run := graph.Pick(l, arithmetic(a, b, f32), arithmetic(a, b, f64))
	if l.Shapes[0].Equal(l.Shapes[1]) {
		l.Emit(stem+"_fwd", tensor.Vec4(n), tensor.RowTiles(n, 1, 1, run), l.Out(), l.In(0), l.In(1), tensor.Int(n))
		return
	}
	host := tensor.Rows(n, 1, run)
	host.Private = repeatWidth * l.DType.Size()
	emitBroadcast(l, stem, host)
}

// emitBroadcast emits stem_broadcast_fwd.
func emitBroadcast(l *graph.Lowering, stem string, host tensor.HostKernel) {
	n := l.Shape.Elements()
	a, b := operandRuns(l)
	arguments := append([]tensor.Argument{l.Out(), l.In(0), l.In(1), tensor.Int(n)}, a.arguments()...)
	l.Emit(stem+"_broadcast_fwd", tensor.Threads(n), host, append(arguments, b.arguments()...)...)
}

// operandRuns returns the order in which the elements of both operands are read.
func operandRuns(l *graph.Lowering) (a, b runs) {
	groups := collapse(l.Shape, func(axis int) int {
		class := 0
		for i, shape := range l.Shapes {
			if alignedExtent(shape, axis, len(l.Shape)) > 1 {
				class |= 1 << i
			}
		}
		return class
	})
	return newRuns(groups, 1), newRuns(groups, 2)
}

// arithmetic returns the loop over elements lo to hi of the output. It calls f for one run of the
// operands at a time, in which each is contiguous or a single number; f gets slices of equal length
// in both cases, since copies of a single number are made in private memory.
func arithmetic[T float32 | float64](a, b runs, f func(y, a, b []T)) func(args *tensor.Args, lo, hi int) {
	return func(args *tensor.Args, lo, hi int) {
		y, copies := tensor.Slice[T](args, 0), tensor.Private[T](args)
		for lo < hi {
			n, atA := a.next(lo, hi)
			_, atB := b.next(lo, hi)
			if a.stride != b.stride {
				n = min(n, repeatWidth)
			}
			f(y[lo:lo+n], operand(tensor.Slice[T](args, 1)[atA:], n, a.stride, copies),
				operand(tensor.Slice[T](args, 2)[atB:], n, b.stride, copies))
			lo += n
		}
	}
}

// operand returns n elements of a run: the first n of x, or n copies of its first.
func operand[T float32 | float64](x []T, n, stride int, copies []T) []T {
	if stride == 1 || n == 1 {
		return x[:n]
	}
	for i := range copies[:n] {
		copies[i] = x[0]
	}
	return copies[:n]
}

// Power is y = a^b, elementwise with NumPy's broadcasting: a [...], b [...] -> y. It is NaN for
// negative a unless b is an integer.
type Power struct{}

// Name implements graph.Op.
func (Power) Name() string { return "power" }

// Shape implements graph.Op.
func (Power) Shape(in []tensor.Shape) (tensor.Shape, error) { return broadcast(in) }

// Lower implements graph.Op.
func (Power) Lower(l *graph.Lowering) { lowerArithmetic(l, "power", powers[float32], powers[float64]) }

func powers[T float32 | float64](y, a, b []T) {
	for i := range y {
		y[i] = T(math.Pow(float64(a[i]), float64(b[i])))
	}
}

// Gradients implements graph.Differentiable: da = dout b a^(b-1), db = dout y ln a. Where b is 0,
// da is 0; where a is 0 and b is not negative, db is 0. The formulas would be 0 times an infinity
// there at a = 0, so that a^(b-1) becomes a^0, and ln 0 becomes ln 1.
func (p Power) Gradients(build *graph.Builder, in []*graph.Node, y, dout *graph.Node) []*graph.Node {
	a, b := in[0], in[1]
	oneInsteadOf0 := func(x *graph.Node) *graph.Node {
		isZero := build.Apply(Compare{Equal: true}, x, build.Apply(Negate{}, x))
		return build.Apply(Add{}, x, isZero)
	}
	lower := build.Apply(p, a, build.Apply(Scale{Factor: 1, Offset: -1}, oneInsteadOf0(b)))
	da := build.Apply(Multiply{}, dout, build.Apply(Multiply{}, b, lower))
	db := build.Apply(Multiply{}, dout, build.Apply(Multiply{}, y, build.Apply(Log{}, oneInsteadOf0(a))))
	return []*graph.Node{unbroadcast(build, da, a), unbroadcast(build, db, b)}
}

// Compare is y = 1 where a < b (Less), a = b (Equal) or a <= b (both), else 0, elementwise with
// NumPy's broadcasting: a [...], b [...] -> y. Its gradient is 0.
type Compare struct{ Less, Equal bool }

// Name implements graph.Op.
func (Compare) Name() string { return "compare" }

// StopGradient implements graph.StopGradient.
func (Compare) StopGradient() {}

// Shape implements graph.Op.
func (c Compare) Shape(in []tensor.Shape) (tensor.Shape, error) {
	if !c.Less && !c.Equal {
		return nil, errors.New("at least one of less and equal must be set")
	}
	return broadcast(in)
}

// Lower implements graph.Op.
func (c Compare) Lower(l *graph.Lowering) {
	stem := "less"
	if c.Less && c.Equal {
		stem = "less_equal"
	} else if c.Equal {
		stem = "equal"
	}
	lowerArithmetic(l, stem, compared[float32](c), compared[float64](c))
}

func compared[T float32 | float64](c Compare) func(y, a, b []T) {
	return func(y, a, b []T) {
		for i := range y {
			y[i] = 0
			if c.Less && a[i] < b[i] || c.Equal && a[i] == b[i] {
				y[i] = 1
			}
		}
	}
}
