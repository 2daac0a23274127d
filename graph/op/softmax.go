package op

import (
	"math"

	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/tensor"
)

// Softmax is p[b k] = exp(logits[b k]) / sum over k of exp(logits[b k]):
// logits [B K] -> probabilities [B K]. It is for predictions: to train, use CrossEntropy.
type Softmax struct{}

// LogSoftmax is the logarithm of Softmax, y[b k] = logits[b k] - ln sum over k of exp(logits[b k]):
// logits [B K] -> y [B K]. Adopted networks use it; a loss of labels is CrossEntropy.
type LogSoftmax struct{}

// Name implements graph.Op.
func (Softmax) Name() string { return "softmax" }

// Name implements graph.Op.
func (LogSoftmax) Name() string { return "log softmax" }

// Shape implements graph.Op.
func (Softmax) Shape(in []tensor.Shape) (tensor.Shape, error) { return rowsShape(in) }

// Shape implements graph.Op.
func (LogSoftmax) Shape(in []tensor.Shape) (tensor.Shape, error) { return rowsShape(in) }

func rowsShape(in []tensor.Shape) (tensor.Shape, error) {
	if err := wantRanks(in, 2); err != nil {
		return nil, err
	}
	return in[0], nil
}

// Lower implements graph.Op.
func (Softmax) Lower(l *graph.Lowering) {
	lowerRows(l, "softmax_fwd", graph.Pick(l, softmax[float32], softmax[float64]))
}

// Lower implements graph.Op.
func (LogSoftmax) Lower(l *graph.Lowering) {
	lowerRows(l, "log_softmax_fwd", graph.Pick(l, logSoftmax[float32], logSoftmax[float64]))
}

// lowerRows emits a launch that has a warp for each row of the output; its inputs have its shape.
func lowerRows(l *graph.Lowering, stem string, run func(classes int) func(a *tensor.Args, lo, hi int)) {
	batch, classes := l.Shape[0], l.Shape[1]
	arguments := []tensor.Argument{l.Out()}
	for i := range l.Shapes {
		arguments = append(arguments, l.In(i))
	}
	l.Emit(stem, tensor.Warps(batch), tensor.Rows(batch, 32*classes, run(classes)),
		append(arguments, tensor.Int(batch), tensor.Int(classes))...)
}

func softmax[T float32 | float64](classes int) func(a *tensor.Args, lo, hi int) {
	return func(a *tensor.Args, lo, hi int) {
		p, logits := tensor.Slice[T](a, 0), tensor.Slice[T](a, 1)
		for row := lo; row < hi; row++ {
			z := logits[row*classes : (row+1)*classes]
			top, total := logSumExp(z)
			for k, v := range z {
				p[row*classes+k] = T(math.Exp(float64(v)-top) / total)
			}
		}
	}
}

func logSoftmax[T float32 | float64](classes int) func(a *tensor.Args, lo, hi int) {
	return func(a *tensor.Args, lo, hi int) {
		y, logits := tensor.Slice[T](a, 0), tensor.Slice[T](a, 1)
		for row := lo; row < hi; row++ {
			z := logits[row*classes : (row+1)*classes]
			top, total := logSumExp(z)
			shift := math.Log(total)
			for k, v := range z {
				y[row*classes+k] = T(float64(v) - top - shift)
			}
		}
	}
}

// Gradients implements graph.Differentiable.
func (Softmax) Gradients(b *graph.Builder, in []*graph.Node, _, dout *graph.Node) []*graph.Node {
	return []*graph.Node{b.Apply(softmaxBackward{}, dout, in[0])}
}

// Gradients implements graph.Differentiable.
func (LogSoftmax) Gradients(b *graph.Builder, _ []*graph.Node, y, dout *graph.Node) []*graph.Node {
	return []*graph.Node{b.Apply(softmaxBackward{log: true}, dout, y)}
}

// softmaxBackward is dlogits[b k] = p[b k] (dout[b k] - sum over k of p[b k] dout[b k]), p being
// computed again, since a rounded p near 1 has lost how far it is from 1: dout [B K],
// logits [B K] -> [B K]. For the logarithm it is dout[b k] - p[b k] sum over k of dout[b k], p being
// e^y: dout [B K], y [B K] -> [B K].
type softmaxBackward struct{ log bool }

func (softmaxBackward) Name() string { return "softmax gradient" }

func (softmaxBackward) Shape(in []tensor.Shape) (tensor.Shape, error) {
	if err := wantRanks(in, 2, 2); err != nil {
		return nil, err
	}
	return in[0], wantEqual(in[0], in[1])
}

func (g softmaxBackward) Lower(l *graph.Lowering) {
	if g.log {
		lowerRows(l, "log_softmax_bwd", graph.Pick(l, logSoftmaxGradient[float32], logSoftmaxGradient[float64]))
		return
	}
	lowerRows(l, "softmax_bwd", graph.Pick(l, softmaxGradient[float32], softmaxGradient[float64]))
}

func softmaxGradient[T float32 | float64](classes int) func(a *tensor.Args, lo, hi int) {
	return func(a *tensor.Args, lo, hi int) {
		dx, dout, logits := tensor.Slice[T](a, 0), tensor.Slice[T](a, 1), tensor.Slice[T](a, 2)
		for row := lo; row < hi; row++ {
			from, to := row*classes, (row+1)*classes
			z, dy := logits[from:to], dout[from:to]
			top, sum := logSumExp(z)
			mean := 0.0
			for k, v := range z {
				mean += math.Exp(float64(v)-top) / sum * float64(dy[k])
			}
			for k, v := range z {
				dx[from+k] = T(math.Exp(float64(v)-top) / sum * (float64(dy[k]) - mean))
			}
		}
	}
}

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
