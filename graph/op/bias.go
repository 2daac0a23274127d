package op

import (
	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/tensor"
	"github.com/pollen-ml/pollen/tensor/kernel"
)

// BiasAdd adds a number to each channel: x [B K ...], bias [K] -> y [B K ...], y[b k ...] = x[b k
// ...] + bias[k]. Behind a MatMul or Conv2D it is fused into it.
type BiasAdd struct{}

// Name implements graph.Op.
func (BiasAdd) Name() string { return "bias" }

// Shape implements graph.Op.
func (BiasAdd) Shape(in []tensor.Shape) (tensor.Shape, error) {
	if err := checkRanks(in, -1, 1); err != nil {
		return nil, err
	}
	if len(in[0]) < 2 || in[0][1] != in[1][0] {
		return nil, errors.Errorf("bias must have one element for each channel (axis 1) of an input of shape %v, got %d", in[0], in[1][0])
	}
	return in[0], nil
}

// planes returns the number of planes, images times channels, and the elements of a plane, which is
// one channel of one image.
func planes(shape tensor.Shape) (rows, width int) {
	rows = shape[0] * shape[1]
	return rows, shape.Elements() / rows
}

// Lower implements graph.Op.
func (BiasAdd) Lower(l *graph.Lowering) {
	rows, width := planes(l.Shape)
	run := graph.Pick(l, biasAdd[float32](width), biasAdd[float64](width))
	l.Emit("bias_fwd", tensor.Vec4(rows*width), tensor.RowTiles(rows, l.Shape[1], width, run),
		l.Out(), l.In(0), l.In(1), tensor.Int(rows*width), tensor.Int(l.Shape[1]), tensor.Int(width))
}

func biasAdd[T float32 | float64](width int) func(a *tensor.Args, lo, hi int) {
	return func(a *tensor.Args, lo, hi int) {
		y, x, bias := tensor.Slice[T](a, 0), tensor.Slice[T](a, 1), tensor.Slice[T](a, 2)
		byImage(lo, hi, len(bias), func(lo, hi, first int) {
			add := kernel.AddPlanes[T]
			if width == 1 {
				add = kernel.Add[T]
			}
			add(y[lo*width:hi*width], x[lo*width:hi*width], bias[first:][:hi-lo])
		})
	}
}

// byImage calls visit for the planes [lo, hi), in ranges that each lie in one image. first is the
// channel of the first plane of a range.
func byImage(lo, hi, channels int, visit func(lo, hi, first int)) {
	for lo < hi {
		first := lo % channels
		end := min(lo+channels-first, hi)
		visit(lo, end, first)
		lo = end
	}
}

// Gradients implements graph.Differentiable.
func (BiasAdd) Gradients(b *graph.Builder, _ []*graph.Node, _, dout *graph.Node) []*graph.Node {
	return []*graph.Node{dout, b.Apply(biasBackward{}, dout)}
}

// biasBackward sums over all axes except the channels': dout [B K ...] -> db [K].
type biasBackward struct{}

func (biasBackward) Name() string { return "bias gradient" }

func (biasBackward) Shape(in []tensor.Shape) (tensor.Shape, error) {
	if len(in) != 1 || len(in[0]) < 2 {
		return nil, errors.Errorf("there must be one input of at least 2 axes, got %v", in)
	}
	return tensor.Shape{in[0][1]}, nil
}

// Lower implements graph.Op. For vectors, width 1, the terms of a channel are a row apart, and
// whole rows are added; for images each plane is contiguous and is added up first.
func (biasBackward) Lower(l *graph.Lowering) {
	rows, width := planes(l.Shapes[0])
	channels := l.Shape[0]
	host, sums := tensor.Rows(channels, rows/channels*width, graph.Pick(l, biasRows[float32], biasRows[float64])), channelSums(rows, channels, width)
	if width > 1 {
		host, sums.plane = planeSums(l, rows, width, graph.Pick(l, biasSum[float32], biasSum[float64])), width
	}
	arguments := []tensor.Argument{l.Out(), l.In(0), tensor.Int(rows * width), tensor.Int(channels), tensor.Int(width)}
	if width == 1 && sums.parts() == 1 {
		l.EmitCalls("bias_bwd", []tensor.Call{sumRows(l, rows/channels, channels)}, host, arguments...)
		return
	}
	emitSums(l, "bias_bwd", "bias_bwd", sums, host, arguments...)
}

// biasRows sums the elements of a channel of vectors [B K], which are K elements apart.
func biasRows[T float32 | float64](a *tensor.Args, lo, hi int) {
	db, dout := tensor.Slice[T](a, 0), tensor.Slice[T](a, 1)
	kernel.SumRows(db[lo:hi], dout[lo:], len(dout)/len(db), len(db))
}

func biasSum[T float32 | float64](a *tensor.Args, totals []float64, lo, hi int) {
	kernel.SumPlanes(totals, tensor.Slice[T](a, 1)[lo:hi])
}

// planeSums returns the host kernel of a sum over all axes except the channels'. Its first phase
// fills the workspace with the total of each plane; it calls sum for several planes at a time. The
// second phase adds up the planes of each channel in order, so that the bits do not depend on
// threads.
func planeSums(l *graph.Lowering, planes, width int, sum func(a *tensor.Args, totals []float64, lo, hi int)) tensor.HostKernel {
	host := tensor.RowTiles(planes, 1, width, func(a *tensor.Args, lo, hi int) {
		sums := tensor.Workspace[float64](a)
		for plane := lo; plane < hi; plane += kernel.PlanesTogether {
			end := min(plane+kernel.PlanesTogether, hi)
			sum(a, sums[plane:end], plane*width, end*width)
		}
	})
	host.Workspace = 8 * planes
	host.Phases = append(host.Phases, tensor.Single(graph.Pick(l, channelTotals[float32], channelTotals[float64])(planes)).Phases...)
	return host
}

// channelTotals adds up, for each channel, the totals of its planes in the workspace.
func channelTotals[T float32 | float64](planes int) func(a *tensor.Args) {
	return func(a *tensor.Args) {
		totals, sums := tensor.Slice[T](a, 0), tensor.Workspace[float64](a)
		for channel := range totals {
			total := 0.0
			for plane := channel; plane < planes; plane += len(totals) {
				total += sums[plane]
			}
			totals[channel] = T(total)
		}
	}
}
