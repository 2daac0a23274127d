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
		for g := sumexp.Of(a, logitsOf(logits, stride, lo, hi), classes); g.Next(); {
			for i := range g.Count {
				log := math.Log(g.Sum[i])
				first, end := labelsOf(stride, lo, hi, g.First+i)
				for row := first; row < end; row++ {
					value := math.NaN()
					if label := labels[row]; label >= 0 && int(label) < classes {
						value = float64(logits[row*stride+int(label)]) - g.Largest[i] - log
					}
					y[row] = T(value)
				}
			}
		}
	}
}

// logitsOf returns the logits of labels [lo, hi). With a stride of 0 all labels have the same row.
func logitsOf[T float32 | float64](logits []T, stride, lo, hi int) []T {
	if stride == 0 {
		return logits
	}
	return logits[lo*stride : hi*stride]
}

// labelsOf returns the labels [first, end) of row i of logitsOf.
func labelsOf(stride, lo, hi, i int) (first, end int) {
	if stride == 0 {
		return lo, hi
	}
	return lo + i, lo + i + 1
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
		for g := sumexp.Of(a, logitsOf(logits, stride, lo, hi), classes); g.Next(); {
			for i := range g.Count {
				inverse := 1 / g.Sum[i]
				first, end := labelsOf(stride, lo, hi, g.First+i)
				for row := first; row < end; row++ {
					dz := dlogits[row*classes:][:classes]
					for k := range dz {
						share := -g.Exponential(i, k) * inverse
						if int32(k) == labels[row] {
							share++
						}
						dz[k] = T(share * float64(dout[row]))
					}
				}
			}
		}
	}
}
