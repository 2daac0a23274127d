package stock

import (
	"fmt"
	"math"
	"strconv"

	"gorgonia.org/gorgonia"

	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/graph/op"
	"github.com/pollen-ml/pollen/graph/op/array"
	"github.com/pollen-ml/pollen/tensor"
)

// maxPool translates the pooling of [B C H W]. Pollen's op has one padding for each axis,
// Gorgonia's one for each side.
func (t *translator) maxPool(m *nodeInfo) *graph.Node {
	north, south, west, east := m.int("padNorth"), m.int("padSouth"), m.int("padWest"), m.int("padEast")
	if north != south || west != east {
		return t.refuse(m, fmt.Sprintf("its padding is asymmetric: %d above and %d below, %d left and %d right", north, south, west, east),
			"pad alike on both sides")
	}
	return t.apply(op.MaxPool2D{
		Window:  [2]int{m.int("h"), m.int("w")},
		Stride:  [2]int{m.int("strideH"), m.int("strideW")},
		Padding: [2]int{north, west},
	}, t.visit(m.inputs[0]))
}

// globalAveragePool translates the mean over height and width.
func (t *translator) globalAveragePool(m *nodeInfo) *graph.Node {
	mean := t.apply(op.Mean{Axes: op.AxesOf(2, 3)}, t.visit(m.inputs[0]))
	return t.view(mean, t.shape(m.Node))
}

// upsample repeats each pixel along both sides. Gorgonia's stride is the number of repetitions - 1.
// An upsampling by 2 has stride 1.
func (t *translator) upsample(m *nodeInfo) *graph.Node {
	times := m.int("stride") + 1
	rows := t.apply(array.Repeat{Axis: 2, Times: times}, t.visit(m.inputs[0]))
	return t.apply(array.Repeat{Axis: 3, Times: times}, rows)
}

// dropout translates the op to Pollen's, whose masks come from seed, chain and step, and so differ
// from Gorgonia's. It scales the inputs that it keeps by 1/(1 - rate), and is the identity in
// evaluation.
func (t *translator) dropout(m *nodeInfo) *graph.Node {
	x, rate := t.visit(m.inputs[0]), m.float("probability")
	if t.evaluating || rate == 0 || x == nil {
		return x
	}
	// Gorgonia merges two dropouts of the same input and rate into one node, with one mask for
	// both.
	if t.userCount(m) > 1 {
		return t.refuse(m, "it is used twice, and may be two dropouts that Gorgonia has taken for one",
			"if it is one dropout, let both users take a Reshape of it to the same shape; if it is two, drop out a Reshape of the input")
	}
	if !(rate > 0 && rate < 1) {
		return t.refuse(m, fmt.Sprintf("its probability is %v", rate), "make it at least 0 and below 1")
	}
	return t.apply(op.Dropout{Rate: rate, Stream: t.b.Stream()}, x, t.b.Header())
}

// groupNorm translates the op, which has no scale and shift: Gorgonia applies them by other ops.
// Pollen's op has both, and gets ones and zeros. Axes after the channels are merged, since the
// statistics are over all of them.
func (t *translator) groupNorm(m *nodeInfo) *graph.Node {
	if t.userCount(m) > 1 {
		return t.refuse(m, "it is used twice, and may be two GroupNorms of different epsilon, which Gorgonia takes for one",
			"apply one of them to a Reshape of the input to its own shape")
	}
	x := t.visit(m.inputs[0])
	if x == nil {
		return nil
	}
	shape := graph.ShapeOf(x)
	channels := shape[1]
	ones, zeros := make([]float64, channels), make([]float64, channels)
	for i := range ones {
		ones[i] = 1
	}
	// [B C rest 1]: Pollen's op takes images.
	images := tensor.Shape{shape[0], channels, shape.Elements() / (shape[0] * channels), 1}
	y := t.apply(op.GroupNorm{Groups: m.int("numGroups"), Epsilon: m.float("epsilon")}, t.view(x, images),
		t.literal(tensor.Shape{channels}, ones...), t.literal(tensor.Shape{channels}, zeros...))
	return t.view(y, shape)
}

// batchNorm translates batch normalisation in evaluation, (x - mean)/sqrt(variance + epsilon) for
// each channel, by the running mean and variance at the beginning of each run.
func (t *translator) batchNorm(m *nodeInfo) *graph.Node {
	if m.bool("training") && !t.evaluating {
		return t.refuse(m, "batch norm in training makes an example's output depend on the others of its batch",
			"use GroupNorm, or evaluate: SetTraining(false) and EvalMode()")
	}
	if t.userCount(m) > 1 {
		return t.refuse(m, "it is used twice, and may be two BatchNorms of the same input, which Gorgonia takes for one",
			"apply one of them to a Reshape of the input to its own shape")
	}
	x := t.visit(m.inputs[0])
	if x == nil {
		return nil
	}
	normal := m.Op().(*gorgonia.BatchNormOp)
	// [1 C 1 1] or [1 C], which broadcasts over examples and pixels.
	epsilon, shape := m.float("epsilon"), tensor.Shape{1, graph.ShapeOf(x)[1], 1, 1}
	if len(graph.ShapeOf(x)) == 2 {
		shape = shape[:2]
	}
	number := strconv.Itoa(t.b.Number("batch norm"))
	// Two inputs, written before each run: training elsewhere may have changed the statistics.
	scale := t.runtimeInput("scale of batch norm "+number, shape, func() []float64 {
		_, variance := normal.Stats()
		scales := floatsOf(variance)
		for i, v := range scales {
			scales[i] = 1 / math.Sqrt(v+epsilon)
		}
		return scales
	})
	mean := t.runtimeInput("mean of batch norm "+number, shape, func() []float64 {
		mean, _ := normal.Stats()
		return floatsOf(mean)
	})
	return t.apply(op.Multiply{}, t.apply(op.Subtract{}, x, mean), scale)
}
