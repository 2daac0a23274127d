package op

import (
	"math"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/graph/op/internal/sumexp"
	"github.com/pollen-ml/pollen/tensor"
)

// LogProbability is the logarithm of each label's probability under softmax(logits):
//
//	y[b] = logits[b labels[b]] - ln sum over k of exp(logits[b k])
//
// logits [B K], or [K] for the same logits with every label, labels [B] int32 -> y [B]. It is NaN
// for a label outside 0 ... K-1. The mean of -y is CrossEntropy. The categorical distribution uses
// it.
type LogProbability struct{}

// Name implements graph.Op.
func (LogProbability) Name() string { return "log probability" }

// InputType implements graph.Mixed.
func (LogProbability) InputType(i int) tensor.DType { return [...]tensor.DType{1: tensor.Int32}[i] }

// Shape implements graph.Op.
func (LogProbability) Shape(in []tensor.Shape) (tensor.Shape, error) {
	if len(in) != 2 || len(in[1]) != 1 || len(in[0]) != 1 && (len(in[0]) != 2 || in[0][0] != in[1][0]) {
		return nil, errors.Errorf("inputs must be logits [B K] or [K] and labels [B], got shapes %v", in)
	}
	return in[1], nil
}

// Lower implements graph.Op.
func (LogProbability) Lower(l *graph.Lowering) {
	rows, stride, classes := logitRows(l)
	run := graph.Pick(l, logProbability[float32](stride, classes), logProbability[float64](stride, classes))
	l.Emit("log_probability_fwd", tensor.Warps(rows), sumexp.Kernel(rows, classes, run),
		l.Out(), l.In(0), l.In(1), tensor.Int(rows), tensor.Int(stride), tensor.Int(classes))
}

// logitRows returns the number of labels, the stride of their rows of logits, which is 0 if all
// share one row, and the number of classes.
func logitRows(l *graph.Lowering) (rows, stride, classes int) {
	logits := l.Shapes[0]
	rows, classes = l.Shapes[1][0], logits[len(logits)-1]
	if len(logits) == 2 {
		stride = classes
	}
	return rows, stride, classes
}

// logProbability computes rows lo to hi of z[label] - log sum exp z. A label outside 0 ... K-1
// gives NaN.
func logProbability[T float32 | float64](stride, classes int) func(a *tensor.Args, lo, hi int) {
	return func(a *tensor.Args, lo, hi int) {
		y, logits, labels := tensor.Slice[T](a, 0), tensor.Slice[T](a, 1), tensor.Slice[int32](a, 2)
		labelRows(a, logits, stride, classes, lo, hi, func(row int, r sumexp.Row) {
			value := math.NaN()
			if label := labels[row]; label >= 0 && int(label) < classes {
				value = float64(logits[row*stride+int(label)]) - r.Largest - math.Log(r.Sum)
			}
			y[row] = T(value)
		})
	}
}

// labelRows calls visit for the rows of logits of labels lo to hi. With a stride of 0 all labels
// have the same row, which is computed once.
func labelRows[T float32 | float64](a *tensor.Args, logits []T, stride, classes, lo, hi int, visit func(row int, r sumexp.Row)) {
	if stride > 0 {
		sumexp.Rows(a, logits[lo*stride:hi*stride], classes, func(i int, r sumexp.Row) { visit(lo+i, r) })
		return
	}
	sumexp.Rows(a, logits, classes, func(_ int, r sumexp.Row) {
		for row := lo; row < hi; row++ {
			visit(row, r)
		}
	})
}

// Gradients implements graph.Differentiable.
func (LogProbability) Gradients(b *graph.Builder, in []*graph.Node, _, dout *graph.Node) []*graph.Node {
	dlogits := b.Apply(logProbabilityBackward{}, in[0], in[1], dout)
	if len(graph.ShapeOf(in[0])) == 1 {
		dlogits = b.Apply(Sum{AxesOf(0)}, dlogits)
	}
	return []*graph.Node{dlogits, nil}
}

// logProbabilityBackward is dlogits[b k] = dout[b] ((k is labels[b]) - softmax(logits)[b k]):
// logits [B K] or [K], labels [B], dout [B] -> [B K].
type logProbabilityBackward struct{}

func (logProbabilityBackward) Name() string { return "log probability gradient" }

func (logProbabilityBackward) InputType(i int) tensor.DType {
	return [...]tensor.DType{1: tensor.Int32, 2: 0}[i]
}

func (logProbabilityBackward) Shape(in []tensor.Shape) (tensor.Shape, error) {
	if err := checkRanks(in, -1, 1, 1); err != nil {
		return nil, err
	}
	if _, err := (LogProbability{}).Shape(in[:2]); err != nil {
		return nil, err
	}
	return tensor.Shape{in[1][0], in[0][len(in[0])-1]}, checkEqual(in[1], in[2])
}

func (logProbabilityBackward) Lower(l *graph.Lowering) {
	rows, stride, classes := logitRows(l)
	run := graph.Pick(l, logProbabilityGradient[float32](stride, classes), logProbabilityGradient[float64](stride, classes))
	l.Emit("log_probability_bwd", tensor.Warps(rows), sumexp.Kernel(rows, classes, run),
		l.Out(), l.In(0), l.In(1), l.In(2), tensor.Int(rows), tensor.Int(stride), tensor.Int(classes))
}

// logProbabilityGradient computes rows lo to hi of (y - p) dout, for the probabilities p and the
// label y as a vector of zeros with a one.
func logProbabilityGradient[T float32 | float64](stride, classes int) func(a *tensor.Args, lo, hi int) {
	return func(a *tensor.Args, lo, hi int) {
		dlogits, logits := tensor.Slice[T](a, 0), tensor.Slice[T](a, 1)
		labels, dout := tensor.Slice[int32](a, 2), tensor.Slice[T](a, 3)
		labelRows(a, logits, stride, classes, lo, hi, func(row int, r sumexp.Row) {
			dz := dlogits[row*classes:][:classes]
			for k, e := range r.Exponentials {
				share := -e / r.Sum
				if int32(k) == labels[row] {
					share++
				}
				dz[k] = T(share * float64(dout[row]))
			}
		})
	}
}
