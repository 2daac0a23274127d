package onnx

import (
	"math"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/graph/op"
	"github.com/pollen-ml/pollen/graph/op/array"
)

// functions has the functions of one number, without attributes, that an op computes. Networks are
// read and written by it. fold computes the function of values that are known while the graph is
// built; it is nil for functions that networks apply to images only.
var functions = map[string]struct {
	op   graph.Op
	fold func(x float64) float64
}{
	"Abs": {op.Abs{}, math.Abs}, "Neg": {op.Negate{}, func(x float64) float64 { return -x }},
	"Exp": {op.Exp{}, math.Exp}, "Log": {op.Log{}, math.Log}, "Sqrt": {op.Sqrt{}, math.Sqrt}, "Erf": {op.Erf{}, math.Erf},
	"Relu": {op.ReLU{}, nil}, "Sigmoid": {op.Sigmoid{}, nil}, "Tanh": {op.Tanh{}, nil},
	"Softplus": {op.Softplus{}, nil}, "Softsign": {op.Softsign{}, nil}, "HardSwish": {op.HardSwish{}, nil},
}

func init() {
	for name, f := range functions {
		translations[name] = unary(f.fold, func(t *translator, x *graph.Node) (*graph.Node, error) { return t.b.Apply(f.op, x), nil })
	}
	for name := range translations {
		operators[name] = true
	}
}

// translations has the translation of each operator of the standard domain. An init function adds
// functions to it.
var translations = map[string]translation{
	// elementwise, except functions
	"Reciprocal": unary(func(x float64) float64 { return 1 / x }, reciprocal),
	"Floor":      known(math.Floor), "Ceil": known(math.Ceil), "Round": known(math.RoundToEven),
	"Not": known(func(x float64) float64 { return 1 - x }), "Sin": known(math.Sin), "Cos": known(math.Cos),
	"Mod": mod, "CumSum": cumSum, "ScatterND": scatterND,
	"Sign": unary(signOf, signs), "Shrink": curve(shrink),
	"Elu": curve(func(t *translator, x *graph.Node) *graph.Node {
		return t.b.Apply(op.ELU{Alpha: t.float("alpha", 1)}, x)
	}),
	"Celu": curve(celu), "Selu": curve(selu), "LeakyRelu": curve(leakyReLU), "ThresholdedRelu": curve(thresholdedReLU),
	"HardSigmoid": curve(func(t *translator, x *graph.Node) *graph.Node {
		return t.hardSigmoid(x, t.float("alpha", 0.2), t.float("beta", 0.5))
	}),
	"Swish": curve(swish), "Mish": curve(mish), "Gelu": curve(gelu), "Clip": clip, "PRelu": prelu,
	"Add": twoInputs(func(x, y float64) float64 { return x + y }, added),
	"Sum": twoInputs(func(x, y float64) float64 { return x + y }, apply2(op.Add{})),
	"Sub": twoInputs(func(x, y float64) float64 { return x - y }, apply2(op.Subtract{})),
	"Mul": mul,
	"Div": div, "Pow": twoInputs(math.Pow, apply2(op.Power{})), "Mean": mean,
	"Max": twoInputs(math.Max, extremum(false)), "Min": twoInputs(math.Min, extremum(true)),
	"Equal":          compare(func(x, y float64) bool { return x == y }, apply2(op.Compare{Equal: true})),
	"Less":           compare(func(x, y float64) bool { return x < y }, apply2(op.Compare{Less: true})),
	"LessOrEqual":    compare(func(x, y float64) bool { return x <= y }, apply2(op.Compare{Less: true, Equal: true})),
	"Greater":        compare(func(x, y float64) bool { return x > y }, swapped(op.Compare{Less: true})),
	"GreaterOrEqual": compare(func(x, y float64) bool { return x >= y }, swapped(op.Compare{Less: true, Equal: true})),
	"And":            compare(func(x, y float64) bool { return x*y != 0 }, apply2(op.Multiply{})),

	// convolutions, pooling, normalisation
	"Conv": conv, "ConvTranspose": convTranspose, "MaxPool": pooling(false), "AveragePool": pooling(true),
	"GlobalAveragePool": global(true), "GlobalMaxPool": global(false), "LpPool": lpPool, "GlobalLpPool": globalLpPool,
	"BatchNormalization": batchNormalization, "InstanceNormalization": groupNormalization, "GroupNormalization": groupNormalization,
	"LayerNormalization": layerNormalization, "RMSNormalization": rmsNormalization, "LpNormalization": lpNormalization, "LRN": curve(lrn),

	// products, rows, reductions
	"Gemm": gemm, "MatMul": matMul, "Einsum": einsum, "Softmax": rows(op.Softmax{}), "LogSoftmax": rows(array.LogSoftmax{}),
	"ReduceMean": reduction(over(func(axes op.Axes) graph.Op { return op.Mean{Axes: axes} }), 0, func(total, x float64) float64 { return total + x },
		func(total float64, n int) float64 { return total / float64(n) }),
	"ReduceSum": reduction(total, 0, func(total, x float64) float64 { return total + x }, unchanged),
	"ReduceL1":  reduction(applied(op.Abs{}, total, nil), 0, func(total, x float64) float64 { return total + math.Abs(x) }, unchanged),
	"ReduceL2": reduction(applied(op.Squared{}, total, op.Sqrt{}), 0, func(total, x float64) float64 { return total + x*x },
		func(total float64, _ int) float64 { return math.Sqrt(total) }),
	"ReduceSumSquare": reduction(applied(op.Squared{}, total, nil), 0, func(total, x float64) float64 { return total + x*x }, unchanged),
	"ReduceLogSum": reduction(applied(nil, total, op.Log{}), 0, func(total, x float64) float64 { return total + x },
		func(total float64, _ int) float64 { return math.Log(total) }),
	"ReduceLogSumExp": reduction(logSumExp, 0, func(total, x float64) float64 { return total + math.Exp(x) },
		func(total float64, _ int) float64 { return math.Log(total) }),
	"ReduceProd": reduction(nil, 1, func(total, x float64) float64 { return total * x }, unchanged),
	"ReduceMax":  reduction(maximum(false), math.Inf(-1), math.Max, unchanged), "ReduceMin": reduction(maximum(true), math.Inf(1), math.Min, unchanged),

	// shapes
	"Identity": moved(identity), "Dropout": dropout, "Cast": moved(castTo), "CastLike": moved(identity),
	"Reshape": moved(rebatching(reshape)), "Flatten": moved(rebatching(flatten)), "Squeeze": moved(squeeze), "Unsqueeze": moved(unsqueeze),
	"Transpose": moved(transpose), "Slice": moved(slice), "Gather": moved(gather), "GatherND": moved(gatherND),
	"DepthToSpace": moved(depthToSpace), "SpaceToDepth": moved(spaceToDepth), "Expand": moved(expand), "Tile": moved(tile), "Pad": moved(pad),
	"Concat": concat, "Split": split, "Shape": shapeOf, "Size": sizeOf, "Constant": constantNode, "ConstantOfShape": constantOfShape,
	"Range": rangeOf, "Where": where, "Resize": resize, "Upsample": resize,
}

func identity(_ *translator, x value) (value, error) { return x, nil }

func unchanged(total float64, _ int) float64 { return total }

// known returns the translation of a function that is only supported for values that are known
// while the graph is built.
func known(fold func(x float64) float64) translation {
	return unary(fold, func(*translator, *graph.Node) (*graph.Node, error) {
		return nil, errors.New("it is supported for shapes and constants only")
	})
}

func swapped(o graph.Op) func(t *translator, a, b *graph.Node) *graph.Node {
	return func(t *translator, a, b *graph.Node) *graph.Node { return t.b.Apply(o, b, a) }
}
