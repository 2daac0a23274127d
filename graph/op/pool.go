package op

import (
	"strings"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/tensor"
	"github.com/pollen-ml/pollen/tensor/kernel"
)

// MaxPool2D is the maximum of each window: x [B C H W] -> y [B C P Q]. The pairs are height, width.
// Windows that reach beyond the padding are left out, as with floor mode elsewhere, and padding is
// never the maximum.
// The gradient goes to the first maximum of a window in row-major order. A ReLU that follows is
// fused into it; the gradient of a ReLU before it is fused into its gradient.
type MaxPool2D struct {
	Window, Stride, Padding [2]int
	// Trailing is the padding after the end of an axis in addition to Padding, which is on both
	// sides. It may be negative, but not the sum. Each window must contain an element of x.
	Trailing [2]int

	relu bool
}

// AveragePool2D is the mean of each window: x [B C H W] -> y [B C P Q]. Padding does not count.
type AveragePool2D struct {
	Window, Stride, Padding [2]int
	Trailing                [2]int // as in MaxPool2D
}

func (p AveragePool2D) kernel(x tensor.Shape) kernel.Pool2D {
	return kernel.Pool2D{
		B: x[0], C: x[1], H: x[2], W: x[3], R: p.Window[0], S: p.Window[1], StrideH: p.Stride[0], StrideW: p.Stride[1],
		PadH: p.Padding[0], PadW: p.Padding[1], TrailH: p.Trailing[0], TrailW: p.Trailing[1],
	}
}

func (p MaxPool2D) kernel(x tensor.Shape) kernel.Pool2D {
	return AveragePool2D{p.Window, p.Stride, p.Padding, p.Trailing}.kernel(x)
}

func poolShape(in []tensor.Shape, kernelOf func(x tensor.Shape) kernel.Pool2D) (tensor.Shape, error) {
	if err := checkRanks(in, 4); err != nil {
		return nil, err
	}
	k := kernelOf(in[0])
	if err := k.Validate(); err != nil {
		return nil, err
	}
	return tensor.Shape{k.B, k.C, k.P(), k.Q()}, nil
}

func poolSizes(k kernel.Pool2D) []tensor.Argument {
	var sizes []tensor.Argument
	for _, n := range []int{k.B * k.C, k.H, k.W, k.P(), k.Q(), k.R, k.S, k.StrideH, k.StrideW, k.PadH, k.PadW} {
		sizes = append(sizes, tensor.Int(n))
	}
	return sizes
}

// Name implements graph.Op.
func (MaxPool2D) Name() string { return "max pool" }

// Shape implements graph.Op.
func (p MaxPool2D) Shape(in []tensor.Shape) (tensor.Shape, error) {
	return poolShape(in, p.kernel)
}

// Lower implements graph.Op.
func (p MaxPool2D) Lower(l *graph.Lowering) {
	k := p.kernel(l.Shapes[0])
	k.ReLU = p.relu
	plan, err := k.MaxForward()
	host := hostRoutine(l, plan, err, operandIndex{out: 0, a: 1, b: absent, bias: absent})
	stem := "max_pool_fwd"
	if p.relu {
		stem = "max_pool_relu_fwd"
	}
	l.Emit(stem, tensor.Threads(l.Shape.Elements()), host, append([]tensor.Argument{l.Out(), l.In(0)}, poolSizes(k)...)...)
}

// Fuse implements graph.Fuser.
func (p MaxPool2D) Fuse(consumer graph.Op) (graph.Op, bool) {
	if _, ok := consumer.(ReLU); !ok || p.relu {
		return nil, false
	}
	p.relu = true
	return p, true
}

// Gradients implements graph.Differentiable.
func (p MaxPool2D) Gradients(b *graph.Builder, in []*graph.Node, _, dout *graph.Node) []*graph.Node {
	if p.usesPlaces(graph.ShapeOf(in[0])) {
		return []*graph.Node{b.Apply(maxPlacesBackward{}, dout, b.Apply(maxPlaces{}, in[0]))}
	}
	return []*graph.Node{b.Apply(maxPoolBackward{pool: p}, dout, in[0])}
}

// maxPoolBackward is the gradient of MaxPool2D: dout [B C P Q], x [B C H W] -> dx [B C H W]. With
// relu, x is the output of a ReLU, whose gradient is fused: dx is 0 unless x is positive. The
// ReLU's gradient brings x as a third input, which is not read.
type maxPoolBackward struct {
	pool MaxPool2D
	relu bool
}

func (maxPoolBackward) Name() string { return "max pool gradient" }

func (g maxPoolBackward) Shape(in []tensor.Shape) (tensor.Shape, error) {
	ranks := []int{4, 4}
	if g.relu {
		ranks = append(ranks, 4)
	}
	if err := checkRanks(in, ranks...); err != nil {
		return nil, err
	}
	y, err := g.pool.Shape(in[1:2])
	if err != nil {
		return nil, err
	}
	if g.relu {
		if err := checkEqual(in[1], in[2]); err != nil {
			return nil, err
		}
	}
	return in[1], checkEqual(y, in[0])
}

// Fuse implements graph.Fuser.
func (g maxPoolBackward) Fuse(consumer graph.Op) (graph.Op, bool) {
	if consumer != (reluBackward{}) || g.relu {
		return nil, false
	}
	g.relu = true
	return g, true
}

// RedundantInput implements graph.RedundantInput. Only the gradient of the ReLU that computed x may
// be fused. dx may also reach the gradient of another ReLU, further up, through a sum whose other
// operand needs no gradient.
func (maxPoolBackward) RedundantInput() {}

func (g maxPoolBackward) Lower(l *graph.Lowering) {
	k := g.pool.kernel(l.Shape)
	k.ReLU = g.relu
	plan, err := k.MaxBackward()
	stem := "max_pool_bwd"
	if g.relu {
		stem = "max_pool_relu_bwd"
	}
	host := hostRoutine(l, plan, err, operandIndex{out: 0, a: 1, b: 2, bias: absent})
	host.RowTile.Owns = func(int, *tensor.Buffer) bool { return true }
	arguments := append([]tensor.Argument{l.Out(), l.In(0), l.In(1)}, poolSizes(k)...)
	if g.pool.Window == Square(3) && g.pool.Stride == Square(2) && l.DType == tensor.Float32 {
		// A GPU searches each window once for the four elements of a pair of rows and columns.
		pairs := ceilDiv(stridePairs(k.H, k.PadH), stridePairRows) * stridePairs(k.W, k.PadW)
		grid := tensor.Blocks{Count: ceilDiv(k.B*k.C*pairs, stripThreads), Threads: stripThreads}
		l.EmitCalls(stem, []tensor.Call{l.Call("max_pool_3x3"+strings.TrimPrefix(stem, "max_pool"), grid, arguments...)}, host, arguments...)
		return
	}
	l.Emit(stem, tensor.Threads(l.Shape.Elements()), host, arguments...)
}

// usesPlaces reports whether the windows are 2 x 2, do not overlap and fill the image. Then the
// gradient needs only the position of the maximum, a byte for each window, instead of x.
func (p MaxPool2D) usesPlaces(x tensor.Shape) bool {
	return p.Window == Square(2) && p.Stride == Square(2) && p.Padding == Square(0) && p.Trailing == Square(0) && x[2]%2 == 0 && x[3]%2 == 0
}

// maxPlaces is the position of the first maximum of each window, PyTorch's return_indices in a
// byte: 0 to 3 in row-major order, plus 4 unless the maximum is positive: x [B C H W] -> [B C H/2
// W/2].
type maxPlaces struct{}

func (maxPlaces) Name() string        { return "max pool places" }
func (maxPlaces) DType() tensor.DType { return tensor.Uint8 }

// Early implements graph.Early: the positions are computed right after x, so that x, the largest
// activation of many networks, need not be kept for the backward pass.
func (maxPlaces) Early() {}

func (maxPlaces) Shape(in []tensor.Shape) (tensor.Shape, error) {
	if err := checkRanks(in, 4); err != nil {
		return nil, err
	}
	if x := in[0]; x[2]%2 != 0 || x[3]%2 != 0 {
		return nil, errors.Errorf("height and width must be even, got %d x %d", x[2], x[3])
	}
	return tensor.Shape{in[0][0], in[0][1], in[0][2] / 2, in[0][3] / 2}, nil
}

func (maxPlaces) Lower(l *graph.Lowering) {
	windows, x := l.Shape.Elements(), l.Shapes[0]
	run := graph.Pick(l, notePlaces[float32], notePlaces[float64])(x)
	l.Emit("max_places_fwd", tensor.Threads(windows), planeTiles(x, run), l.Out(), l.In(0), tensor.Int(windows), tensor.Int(l.Shape[3]))
}

// planeTiles returns a host kernel whose buffers all consist of planes, of images [B C H W] or of
// their windows.
func planeTiles(images tensor.Shape, run func(a *tensor.Args, lo, hi int)) tensor.HostKernel {
	rows, width := planes(images)
	host := tensor.RowTiles(rows, 1, width, run)
	host.RowTile.Owns = func(int, *tensor.Buffer) bool { return true }
	return host
}

func notePlaces[T float32 | float64](x tensor.Shape) func(a *tensor.Args, lo, hi int) {
	q, area := kernel.NewWindows2x2(x[2], x[3]), x[2]*x[3]
	return func(a *tensor.Args, lo, hi int) {
		kernel.MaxIndices(q, tensor.Slice[uint8](a, 0)[lo*area/4:hi*area/4], tensor.Slice[T](a, 1)[lo*area:hi*area])
	}
}

// maxPlacesBackward is the gradient of MaxPool2D from the positions of the maxima, an unpooling:
// dout [B C P Q], places [B C P Q] -> dx [B C 2P 2Q]. With relu, the gradient of a ReLU is fused,
// as in maxPoolBackward: dx is 0 where the maximum is not positive.
type maxPlacesBackward struct{ relu bool }

func (maxPlacesBackward) Name() string { return "max pool gradient" }

// InputType implements graph.Mixed.
func (maxPlacesBackward) InputType(i int) tensor.DType {
	return [...]tensor.DType{1: tensor.Uint8, 2: 0}[i]
}

func (g maxPlacesBackward) Shape(in []tensor.Shape) (tensor.Shape, error) {
	ranks := []int{4, 4}
	if g.relu {
		ranks = append(ranks, 4)
	}
	if err := checkRanks(in, ranks...); err != nil {
		return nil, err
	}
	d := in[0]
	return tensor.Shape{d[0], d[1], 2 * d[2], 2 * d[3]}, checkEqual(in[0], in[1])
}

// Fuse implements graph.Fuser.
func (g maxPlacesBackward) Fuse(consumer graph.Op) (graph.Op, bool) {
	if consumer != (reluBackward{}) || g.relu {
		return nil, false
	}
	g.relu = true
	return g, true
}

// RedundantInput implements graph.RedundantInput, for the same reason as maxPoolBackward's.
func (maxPlacesBackward) RedundantInput() {}

func (g maxPlacesBackward) Lower(l *graph.Lowering) {
	stem, windows := "max_places_bwd", l.Shapes[0].Elements()
	if g.relu {
		stem = "max_places_relu_bwd"
	}
	run := graph.Pick(l, spreadPlaces[float32], spreadPlaces[float64])(l.Shape, g.relu)
	l.Emit(stem, tensor.Threads(windows), planeTiles(l.Shape, run),
		l.Out(), l.In(0), l.In(1), tensor.Int(windows), tensor.Int(l.Shapes[0][3]))
}

func spreadPlaces[T float32 | float64](x tensor.Shape, relu bool) func(a *tensor.Args, lo, hi int) {
	q, area := kernel.NewWindows2x2(x[2], x[3]), x[2]*x[3]
	return func(a *tensor.Args, lo, hi int) {
		dx, dout, places := tensor.Slice[T](a, 0), tensor.Slice[T](a, 1), tensor.Slice[uint8](a, 2)
		kernel.UnpoolGrad(q, dx[lo*area:hi*area], dout[lo*area/4:hi*area/4], places[lo*area/4:hi*area/4], relu)
	}
}

// Name implements graph.Op.
func (AveragePool2D) Name() string { return "average pool" }

// Shape implements graph.Op.
func (p AveragePool2D) Shape(in []tensor.Shape) (tensor.Shape, error) {
	return poolShape(in, p.kernel)
}

// Lower implements graph.Op.
func (p AveragePool2D) Lower(l *graph.Lowering) {
	k := p.kernel(l.Shapes[0])
	plan, err := k.AverageForward()
	host := hostRoutine(l, plan, err, operandIndex{out: 0, a: 1, b: absent, bias: absent})
	l.Emit("average_pool_fwd", tensor.Threads(l.Shape.Elements()), host, append([]tensor.Argument{l.Out(), l.In(0)}, poolSizes(k)...)...)
}

// Gradients implements graph.Differentiable.
func (p AveragePool2D) Gradients(b *graph.Builder, in []*graph.Node, _, dout *graph.Node) []*graph.Node {
	x := graph.ShapeOf(in[0])
	return []*graph.Node{b.Apply(averagePoolBackward{p, x[2], x[3]}, dout)}
}

// averagePoolBackward is the gradient of AveragePool2D: dout [B C P Q] -> dx [B C H W].
type averagePoolBackward struct {
	pool          AveragePool2D
	height, width int
}

func (averagePoolBackward) Name() string { return "average pool gradient" }

func (g averagePoolBackward) Shape(in []tensor.Shape) (tensor.Shape, error) {
	if err := checkRanks(in, 4); err != nil {
		return nil, err
	}
	x := tensor.Shape{in[0][0], in[0][1], g.height, g.width}
	y, err := g.pool.Shape([]tensor.Shape{x})
	if err != nil {
		return nil, err
	}
	return x, checkEqual(y, in[0])
}

func (g averagePoolBackward) Lower(l *graph.Lowering) {
	k := g.pool.kernel(l.Shape)
	plan, err := k.AverageBackward()
	host := hostRoutine(l, plan, err, operandIndex{out: 0, a: 1, b: absent, bias: absent})
	l.Emit("average_pool_bwd", tensor.Threads(l.Shape.Elements()), host, append([]tensor.Argument{l.Out(), l.In(0)}, poolSizes(k)...)...)
}
