package op

import (
	"math"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/tensor"
)

// SquaredError is half the squared distance, summed over an example and averaged over the batch,
// which is the negative log-likelihood of N(prediction, 1) up to a constant:
//
//	loss = 1/B sum over b ... of (prediction[b ...] - target[b ...])^2 / 2
//
// prediction [B ...], target of the same shape -> a scalar.
type SquaredError struct{}

// BernoulliLogits is the negative log-likelihood of targets in [0, 1] under
// Bernoulli(sigmoid(logits)), summed over an example and averaged over the batch:
//
//	loss = 1/B sum over b ... of softplus(logits[b ...]) - targets[b ...] logits[b ...]
//
// logits [B ...], targets of the same shape -> a scalar. A target outside [0, 1] makes the loss
// NaN, which stops the run.
type BernoulliLogits struct{}

// likelihood is the term of a loss that sums over the elements of two tensors, with its
// derivatives.
type likelihood struct {
	stem         string
	value        func(p, t float64) float64
	byPrediction func(p, t float64) float64
	byTarget     func(p, t float64) float64
}

func (SquaredError) likelihood() likelihood {
	return likelihood{
		stem:         "squared_error",
		value:        func(p, t float64) float64 { return (p - t) * (p - t) / 2 },
		byPrediction: func(p, t float64) float64 { return p - t },
		byTarget:     func(p, t float64) float64 { return t - p },
	}
}

func (BernoulliLogits) likelihood() likelihood {
	return likelihood{
		stem: "bernoulli_logits",
		value: func(p, t float64) float64 {
			if !(t >= 0 && t <= 1) {
				return math.NaN()
			}
			return softplus(p) - t*p
		},
		byPrediction: func(p, t float64) float64 { return sigmoid(p) - t },
		byTarget:     func(p, _ float64) float64 { return -p },
	}
}

// Name implements graph.Op.
func (SquaredError) Name() string { return "squared error" }

// Name implements graph.Op.
func (BernoulliLogits) Name() string { return "bernoulli logits" }

// Shape implements graph.Op.
func (SquaredError) Shape(in []tensor.Shape) (tensor.Shape, error) { return likelihoodShape(in) }

// Shape implements graph.Op.
func (BernoulliLogits) Shape(in []tensor.Shape) (tensor.Shape, error) { return likelihoodShape(in) }

func likelihoodShape(in []tensor.Shape) (tensor.Shape, error) {
	if err := checkRanks(in, -1, -1); err != nil {
		return nil, err
	}
	if len(in[0]) == 0 {
		return nil, errors.New("inputs must have shape [B ...], got scalars")
	}
	return tensor.Shape{}, checkEqual(in[0], in[1])
}

// Lower implements graph.Op.
func (s SquaredError) Lower(l *graph.Lowering) { s.likelihood().lower(l) }

// Lower implements graph.Op.
func (s BernoulliLogits) Lower(l *graph.Lowering) { s.likelihood().lower(l) }

// Gradients implements graph.Differentiable.
func (s SquaredError) Gradients(b *graph.Builder, in []*graph.Node, _, dout *graph.Node) []*graph.Node {
	return []*graph.Node{
		b.Apply(likelihoodBackward[SquaredError]{}, in[0], in[1], dout),
		b.Apply(likelihoodBackward[SquaredError]{ofTarget: true}, in[0], in[1], dout),
	}
}

// Gradients implements graph.Differentiable.
func (s BernoulliLogits) Gradients(b *graph.Builder, in []*graph.Node, _, dout *graph.Node) []*graph.Node {
	return []*graph.Node{
		b.Apply(likelihoodBackward[BernoulliLogits]{}, in[0], in[1], dout),
		b.Apply(likelihoodBackward[BernoulliLogits]{ofTarget: true}, in[0], in[1], dout),
	}
}

// lower emits a loss: the sum over the elements of each example, then the mean over the examples.
func (k likelihood) lower(l *graph.Lowering) {
	batch, width := l.Shapes[0][0], l.Shapes[0].Elements()/l.Shapes[0][0]
	host := tensor.Rows(batch, width, graph.Pick(l, likelihoodRows[float32], likelihoodRows[float64])(k.value, width))
	host.Workspace = 8 * batch
	host.Phases = append(host.Phases, tensor.Single(graph.Pick(l, meanOfSums[float32], meanOfSums[float64])(batch, batch)).Phases...)
	emitMean(l, k.stem, tensor.Threads(batch*width), batch, host, l.Out(), l.In(0), l.In(1), tensor.Int(batch), tensor.Int(width))
}

func likelihoodRows[T float32 | float64](value func(p, t float64) float64, width int) func(a *tensor.Args, lo, hi int) {
	return func(a *tensor.Args, lo, hi int) {
		prediction, target, losses := tensor.Slice[T](a, 1), tensor.Slice[T](a, 2), tensor.Workspace[float64](a)
		for row := lo; row < hi; row++ {
			total := 0.0
			for i := row * width; i < (row+1)*width; i++ {
				total += value(float64(prediction[i]), float64(target[i]))
			}
			losses[row] = total
		}
	}
}

// likelihoodBackward is the derivative by the prediction, or by the target, times dout / B:
// prediction [B ...], target [B ...], dout scalar -> [B ...].
type likelihoodBackward[L interface{ likelihood() likelihood }] struct{ ofTarget bool }

func (likelihoodBackward[L]) Name() string {
	var loss L
	return loss.likelihood().stem + " gradient"
}

func (likelihoodBackward[L]) Shape(in []tensor.Shape) (tensor.Shape, error) {
	if err := checkRanks(in, -1, -1, 0); err != nil {
		return nil, err
	}
	_, err := likelihoodShape(in[:2])
	return in[0], err
}

func (g likelihoodBackward[L]) Lower(l *graph.Lowering) {
	var loss L
	k := loss.likelihood()
	slope := k.byPrediction
	if g.ofTarget {
		slope = k.byTarget
	}
	n, batch := l.Shape.Elements(), l.Shape[0]
	run := graph.Pick(l, likelihoodGradient[float32], likelihoodGradient[float64])(slope, batch)
	l.Emit(k.stem+"_bwd", tensor.Threads(n), tensor.Rows(n, 1, run), l.Out(), l.In(0), l.In(1), l.In(2), tensor.Int(n), tensor.Int(batch), tensor.Bool(g.ofTarget))
}

func likelihoodGradient[T float32 | float64](slope func(p, t float64) float64, batch int) func(a *tensor.Args, lo, hi int) {
	return func(a *tensor.Args, lo, hi int) {
		d, prediction, target, dout := tensor.Slice[T](a, 0), tensor.Slice[T](a, 1), tensor.Slice[T](a, 2), tensor.Slice[T](a, 3)
		scale := float64(dout[0]) / float64(batch)
		for i := lo; i < hi; i++ {
			d[i] = T(scale * slope(float64(prediction[i]), float64(target[i])))
		}
	}
}
