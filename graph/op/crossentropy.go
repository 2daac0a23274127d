package op

import (
	"math"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/graph/op/internal/sumexp"
	"github.com/pollen-ml/pollen/tensor"
)

// CrossEntropy is the mean negative log-likelihood of labels under softmax(logits):
//
//	loss = 1/B sum over b of (log sum over k of exp(logits[b k]) - logits[b labels[b]])
//
// logits [B K], labels [B] int32 -> a scalar. It is log-softmax and negative log-likelihood in one
// op, so that no probability underflows. A label outside 0 ... K-1 makes the loss NaN, which stops
// the run.
type CrossEntropy struct{}

// Name implements graph.Op.
func (CrossEntropy) Name() string { return "cross entropy" }

// InputType implements graph.Mixed.
func (CrossEntropy) InputType(i int) tensor.DType { return [...]tensor.DType{1: tensor.Int32}[i] }

// Shape implements graph.Op.
func (CrossEntropy) Shape(in []tensor.Shape) (tensor.Shape, error) {
	return tensor.Shape{}, checkLabels(in)
}

// checkLabels checks logits [B K] and labels [B].
func checkLabels(in []tensor.Shape) error {
	if len(in) != 2 || len(in[0]) != 2 || len(in[1]) != 1 || in[0][0] != in[1][0] {
		return errors.Errorf("inputs must be logits [B K] and labels [B], got shapes %v", in)
	}
	return nil
}

// Lower implements graph.Op. The first phase on the host writes the loss of each group of rows to
// the workspace, in float64; the second adds them up in order, so that the bits do not depend on
// threads.
func (CrossEntropy) Lower(l *graph.Lowering) {
	batch, classes := l.Shapes[0][0], l.Shapes[0][1]
	host := sumexp.Kernel(batch, classes, graph.Pick(l, crossEntropyRows[float32], crossEntropyRows[float64]))
	groups := ceilDiv(batch, sumexp.Together(classes))
	host.Workspace = 8 * groups
	mean := tensor.Single(graph.Pick(l, meanOfSums[float32], meanOfSums[float64])(groups, batch))
	host.Phases = append(host.Phases, mean.Phases...)
	emitMean(l, "cross_entropy", tensor.Warps(batch), batch, host, l.Out(), l.In(0), l.In(1), tensor.Int(batch), tensor.Int(classes))
}

// crossEntropyRows computes the losses of rows lo to hi, summed over each group. The sum of the
// logarithms of at most eight numbers, from 1 to the number of classes, is the logarithm of their
// product.
func crossEntropyRows[T float32 | float64](a *tensor.Args, lo, hi int) {
	logits, labels, losses := tensor.Slice[T](a, 1), tensor.Slice[int32](a, 2), tensor.Workspace[float64](a)
	classes := len(logits) / len(labels)
	for g := sumexp.Of(a, logits[lo*classes:hi*classes], classes); g.Next(); {
		first, loss, product := lo+g.First, 0.0, 1.0
		for i, label := range labels[first:][:g.Count] {
			if label < 0 || int(label) >= classes {
				loss = math.NaN()
				continue
			}
			loss += g.Largest[i] - float64(logits[(first+i)*classes+int(label)])
			product *= g.Sum[i]
		}
		losses[first/sumexp.Together(classes)] = loss + math.Log(product)
	}
}

// meanOfSums returns the mean of some rows, given sums of them in the workspace.
func meanOfSums[T float32 | float64](sums, rows int) func(a *tensor.Args) {
	return func(a *tensor.Args) {
		total := 0.0
		for _, v := range tensor.Workspace[float64](a)[:sums] {
			total += v
		}
		tensor.Slice[T](a, 0)[0] = T(total / float64(rows))
	}
}

// Gradients implements graph.Differentiable. Labels have none.
func (CrossEntropy) Gradients(b *graph.Builder, in []*graph.Node, _, dout *graph.Node) []*graph.Node {
	return []*graph.Node{b.Apply(crossEntropyBackward{}, in[0], in[1], dout), nil}
}

// crossEntropyBackward is (softmax(logits) - onehot(labels)) dout / B: logits [B K], labels [B],
// dout scalar -> [B K]. In float32 a probability below minProbability is 0.
type crossEntropyBackward struct{}

func (crossEntropyBackward) Name() string { return "cross entropy gradient" }

func (crossEntropyBackward) InputType(i int) tensor.DType {
	return [...]tensor.DType{1: tensor.Int32, 2: 0}[i]
}

func (crossEntropyBackward) Shape(in []tensor.Shape) (tensor.Shape, error) {
	if err := checkRanks(in, 2, 1, 0); err != nil {
		return nil, err
	}
	return in[0], checkLabels(in[:2])
}

func (crossEntropyBackward) Lower(l *graph.Lowering) {
	batch, classes := l.Shape[0], l.Shape[1]
	run := graph.Pick(l, crossEntropyGradient[float32](minProbability), crossEntropyGradient[float64](0))
	l.Emit("cross_entropy_bwd", tensor.Warps(batch), sumexp.Kernel(batch, classes, run),
		l.Out(), l.In(0), l.In(1), l.In(2), tensor.Int(batch), tensor.Int(classes))
}

// minProbability is the limit below which probabilities are rounded to 0 in the gradient. It is
// far below what float32 resolves next to the label's gradient, p - 1, and keeps gradients out of
// the subnormal numbers, below 1.2e-38: a confident network has many of them, and processors
// multiply them some hundred times more slowly.
const minProbability = 0x1p-64

// crossEntropyGradient computes rows lo to hi of (p - y)/B times dout, for the probabilities p and
// the label y as a vector of zeros with a one. Probabilities below least are 0.
func crossEntropyGradient[T float32 | float64](least float64) func(a *tensor.Args, lo, hi int) {
	return func(a *tensor.Args, lo, hi int) {
		dlogits, logits := tensor.Slice[T](a, 0), tensor.Slice[T](a, 1)
		labels, dout := tensor.Slice[int32](a, 2), tensor.Slice[T](a, 3)
		classes := len(logits) / len(labels)
		scale := float64(dout[0]) / float64(len(labels))
		for g := sumexp.Of(a, logits[lo*classes:hi*classes], classes); g.Next(); {
			for i := range g.Count {
				row, inverse := lo+g.First+i, 1/g.Sum[i]
				dz, label := dlogits[row*classes:][:classes], labels[row]
				for k := range dz {
					p := g.Exponential(i, k) * inverse
					if p < least {
						p = 0
					}
					if int32(k) == label {
						p--
					}
					dz[k] = T(p * scale)
				}
			}
		}
	}
}

// Softmax is p[b k] = exp(logits[b k]) / sum over k of exp(logits[b k]):
// logits [B K] -> probabilities [B K]. It is for predictions; for a loss use CrossEntropy.
type Softmax struct{}

// Name implements graph.Op.
func (Softmax) Name() string { return "softmax" }

// Shape implements graph.Op.
func (Softmax) Shape(in []tensor.Shape) (tensor.Shape, error) {
	if err := checkRanks(in, 2); err != nil {
		return nil, err
	}
	return in[0], nil
}

// Lower implements graph.Op.
func (Softmax) Lower(l *graph.Lowering) {
	lowerRows(l, "softmax_fwd", graph.Pick(l, softmax[float32], softmax[float64]))
}

// lowerRows emits a launch with a warp for each row of the output; all inputs have its shape.
func lowerRows(l *graph.Lowering, stem string, run func(classes int) func(a *tensor.Args, lo, hi int)) {
	batch, classes := l.Shape[0], l.Shape[1]
	arguments := []tensor.Argument{l.Out()}
	for i := range l.Shapes {
		arguments = append(arguments, l.In(i))
	}
	l.Emit(stem, tensor.Warps(batch), sumexp.Kernel(batch, classes, run(classes)),
		append(arguments, tensor.Int(batch), tensor.Int(classes))...)
}

func softmax[T float32 | float64](classes int) func(a *tensor.Args, lo, hi int) {
	return func(a *tensor.Args, lo, hi int) {
		p, logits := tensor.Slice[T](a, 0), tensor.Slice[T](a, 1)
		for g := sumexp.Of(a, logits[lo*classes:hi*classes], classes); g.Next(); {
			for i := range g.Count {
				g.Normalize(i, p[(lo+g.First+i)*classes:][:classes])
			}
		}
	}
}

// Gradients implements graph.Differentiable.
func (Softmax) Gradients(b *graph.Builder, in []*graph.Node, _, dout *graph.Node) []*graph.Node {
	return []*graph.Node{b.Apply(softmaxBackward{}, dout, in[0])}
}

// softmaxBackward is dlogits[b k] = p[b k] (dout[b k] - sum over k of p[b k] dout[b k]): dout [B
// K], logits [B K] -> [B K]. It computes p from the logits again, because a p near 1 that was
// rounded to float32 has lost its distance from 1.
type softmaxBackward struct{}

func (softmaxBackward) Name() string { return "softmax gradient" }

func (softmaxBackward) Shape(in []tensor.Shape) (tensor.Shape, error) {
	if err := checkRanks(in, 2, 2); err != nil {
		return nil, err
	}
	return in[0], checkEqual(in[0], in[1])
}

func (softmaxBackward) Lower(l *graph.Lowering) {
	lowerRows(l, "softmax_bwd", graph.Pick(l, softmaxGradient[float32], softmaxGradient[float64]))
}

// softmaxGradient computes rows lo to hi of p (dy - sum p dy).
func softmaxGradient[T float32 | float64](classes int) func(a *tensor.Args, lo, hi int) {
	return func(a *tensor.Args, lo, hi int) {
		dx, dout, logits := tensor.Slice[T](a, 0), tensor.Slice[T](a, 1), tensor.Slice[T](a, 2)
		for g := sumexp.Of(a, logits[lo*classes:hi*classes], classes); g.Next(); {
			for i := range g.Count {
				from, inverse := (lo+g.First+i)*classes, 1/g.Sum[i]
				dy, mean := dout[from:][:classes], 0.0
				for k, d := range dy {
					mean += g.Exponential(i, k) * inverse * float64(d)
				}
				for k, d := range dy {
					dx[from+k] = T(g.Exponential(i, k) * inverse * (float64(d) - mean))
				}
			}
		}
	}
}

// Accuracy is the fraction of rows whose largest logit is the label's:
// logits [B K], labels [B] int32 -> a scalar. Of equal logits the first counts as the largest.
type Accuracy struct{}

// Name implements graph.Op.
func (Accuracy) Name() string { return "accuracy" }

// InputType implements graph.Mixed.
func (Accuracy) InputType(i int) tensor.DType { return [...]tensor.DType{1: tensor.Int32}[i] }

// Shape implements graph.Op.
func (Accuracy) Shape(in []tensor.Shape) (tensor.Shape, error) {
	return tensor.Shape{}, checkLabels(in)
}

// Lower implements graph.Op.
func (Accuracy) Lower(l *graph.Lowering) {
	batch, classes := l.Shapes[0][0], l.Shapes[0][1]
	run := graph.Pick(l, accuracy[float32], accuracy[float64])
	l.Emit("accuracy_fwd", tensor.Block(min(batch, 1024)), tensor.Single(run), l.Out(), l.In(0), l.In(1), tensor.Int(batch), tensor.Int(classes))
}

// accuracy computes the fraction of rows whose first largest logit is the label's.
func accuracy[T float32 | float64](a *tensor.Args) {
	logits, labels := tensor.Slice[T](a, 1), tensor.Slice[int32](a, 2)
	classes, right := len(logits)/len(labels), 0
	for row, label := range labels {
		best := 0
		for k, v := range logits[row*classes : (row+1)*classes] {
			if v > logits[row*classes+best] {
				best = k
			}
		}
		if int(label) == best {
			right++
		}
	}
	tensor.Slice[T](a, 0)[0] = T(right) / T(len(labels))
}
