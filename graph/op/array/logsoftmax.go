package array

import (
	"math"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/graph/op/internal/sumexp"
	"github.com/pollen-ml/pollen/tensor"
)

// LogSoftmax is the logarithm of op.Softmax: logits [B K] -> y [B K],
// y[b k] = logits[b k] - ln sum over k of exp(logits[b k]). For a loss with labels that are class
// numbers use op.CrossEntropy.
type LogSoftmax struct{}

// Name implements graph.Op.
func (LogSoftmax) Name() string { return "log softmax" }

// Shape implements graph.Op.
func (LogSoftmax) Shape(in []tensor.Shape) (tensor.Shape, error) {
	if err := checkInputs(in, 1); err != nil {
		return nil, err
	}
	if len(in[0]) != 2 {
		return nil, errors.Errorf("input must have 2 axes, got shape %v", in[0])
	}
	return in[0], nil
}

// Lower implements graph.Op.
func (LogSoftmax) Lower(l *graph.Lowering) {
	batch, classes := l.Shape[0], l.Shape[1]
	run := graph.Pick(l, logSoftmax[float32], logSoftmax[float64])(classes)
	l.Emit("log_softmax_fwd", tensor.Warps(batch), sumexp.Kernel(batch, classes, run), l.Out(), l.In(0), tensor.Int(batch), tensor.Int(classes))
}

// logSoftmax computes rows lo to hi. The largest logit is taken out of the sum of exponentials, so
// that none overflows.
func logSoftmax[T float32 | float64](classes int) func(a *tensor.Args, lo, hi int) {
	return func(a *tensor.Args, lo, hi int) {
		y, x := tensor.Slice[T](a, 0), tensor.Slice[T](a, 1)
		for g := sumexp.Of(a, x[lo*classes:hi*classes], classes); g.Next(); {
			for i := range g.Count {
				from, log := (lo+g.First+i)*classes, math.Log(g.Sum[i])
				for k, v := range x[from:][:classes] {
					y[from+k] = T(float64(v) - g.Largest[i] - log)
				}
			}
		}
	}
}

// Gradients implements graph.Differentiable.
func (LogSoftmax) Gradients(b *graph.Builder, _ []*graph.Node, y, dout *graph.Node) []*graph.Node {
	return []*graph.Node{b.Apply(logSoftmaxBackward{}, dout, y)}
}

// logSoftmaxBackward is dlogits[b k] = dout[b k] - e^y[b k] sum over k of dout[b k]:
// dout [B K], y [B K] -> [B K].
type logSoftmaxBackward struct{}

func (logSoftmaxBackward) Name() string { return "log softmax gradient" }

func (logSoftmaxBackward) Shape(in []tensor.Shape) (tensor.Shape, error) {
	if err := checkInputs(in, 2); err != nil {
		return nil, err
	}
	if len(in[0]) != 2 || !in[0].Equal(in[1]) {
		return nil, errors.Errorf("shapes must be equal, with 2 axes, got %v and %v", in[0], in[1])
	}
	return in[0], nil
}

func (logSoftmaxBackward) Lower(l *graph.Lowering) {
	batch, classes := l.Shape[0], l.Shape[1]
	run := graph.Pick(l, logSoftmaxGradient[float32], logSoftmaxGradient[float64])(classes)
	l.Emit("log_softmax_bwd", tensor.Warps(batch), tensor.Rows(batch, 32*classes, run), l.Out(), l.In(0), l.In(1), tensor.Int(batch), tensor.Int(classes))
}

// logSoftmaxGradient computes rows lo to hi. Probabilities are exponentials of the output, which
// the forward op has computed.
func logSoftmaxGradient[T float32 | float64](classes int) func(a *tensor.Args, lo, hi int) {
	return func(a *tensor.Args, lo, hi int) {
		dx, dout, y := tensor.Slice[T](a, 0), tensor.Slice[T](a, 1), tensor.Slice[T](a, 2)
		for from := lo * classes; from < hi*classes; from += classes {
			total := 0.0
			for i := from; i < from+classes; i++ {
				total += float64(dout[i])
			}
			for i := from; i < from+classes; i++ {
				dx[i] = T(float64(dout[i]) - math.Exp(float64(y[i]))*total)
			}
		}
	}
}
