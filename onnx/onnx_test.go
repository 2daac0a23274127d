package onnx

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/tensor"
)

// TestOperators has cases by hand; TestBackend runs ONNX's own cases of all operators.
func TestOperators(t *testing.T) {
	gelu := func(x float64) float64 { return x * (1 + math.Erf(x/math.Sqrt2)) / 2 }
	// added is a model that adds to x what an operator makes of constants.
	added := func(op string, attributes map[string]any, tensors ...[]byte) []byte {
		inputs := []string{"a", "b", "c"}[:len(tensors)]
		return modelOf(18, graphOf{nodes: [][]byte{nodeOf(op, inputs, []string{"made"}, attributes), nodeOf("Add", []string{"x", "made"}, []string{"y"}, nil)},
			tensors: tensors, inputs: [][]byte{valueOf("x", -1, 3)}, outputs: [][]byte{valueOf("y")}})
	}
	same := func(kernel, stride int) map[string]any {
		return map[string]any{"auto_pad": "SAME_UPPER", "kernel_shape": []int{1, kernel}, "strides": []int{1, stride}}
	}
	transposed := func(mode string, extent int) []byte {
		return single("ConvTranspose", map[string]any{"auto_pad": mode, "strides": []int{1, 3}, "output_shape": []int{1, extent}}, []int{-1, 1, 1, 2},
			tensorOf("w", []int{1, 1, 1, 1}, 1))
	}
	var many []int // indices without a pattern
	var picked []float64
	for i := range 2400 {
		many, picked = append(many, i*i%3), append(picked, float64(i*i%3+1))
	}
	for _, row := range []struct {
		name  string
		model []byte
		x     []float64
		shape []int // of x
		want  []float64
		to    []int // the shape of y
	}{
		{"Relu", single("Relu", nil, []int{-1, 3}), []float64{-1, 0, 2}, []int{1, 3}, []float64{0, 0, 2}, []int{1, 3}},
		{"Clip", single("Clip", nil, []int{-1, 3}, tensorOf("low", nil, 0), tensorOf("high", nil, 6)),
			[]float64{-1, 3, 9}, []int{1, 3}, []float64{0, 3, 6}, []int{1, 3}},
		{"LeakyRelu of slope 0", single("LeakyRelu", map[string]any{"alpha": 0.0}, []int{-1, 3}), []float64{-1, 0, 2}, []int{1, 3}, []float64{0, 0, 2}, []int{1, 3}},
		{"Gelu", single("Gelu", nil, []int{-1, 2}), []float64{-1, 0.5}, []int{1, 2}, []float64{gelu(-1), gelu(0.5)}, []int{1, 2}},
		{"HardSwish", single("HardSwish", nil, []int{-1, 3}), []float64{-4, 1, 4}, []int{1, 3}, []float64{0, 4.0 / 6, 4}, []int{1, 3}},
		{"Add broadcasts", single("Add", nil, []int{-1, 2}, tensorOf("b", []int{2}, 10, 20)), []float64{1, 2, 3, 4}, []int{2, 2},
			[]float64{11, 22, 13, 24}, []int{2, 2}},
		{"Add a wider vector", single("Add", nil, []int{-1, 1}, tensorOf("b", []int{3}, 10, 20, 30)), []float64{1, 2}, []int{2, 1},
			[]float64{11, 21, 31, 12, 22, 32}, []int{2, 3}},
		{"Sub a number", single("Sub", nil, []int{-1, 2}, tensorOf("b", nil, 10)), []float64{1, 2}, []int{1, 2}, []float64{-9, -8}, []int{1, 2}},
		{"Div by a number", single("Div", nil, []int{-1, 2}, tensorOf("b", nil, 4)), []float64{1, 2}, []int{1, 2}, []float64{0.25, 0.5}, []int{1, 2}},
		{"Div of a number", modelOf(13, graphOf{nodes: [][]byte{nodeOf("Div", []string{"b", "x"}, []string{"y"}, nil)}, tensors: [][]byte{tensorOf("b", nil, 4)},
			inputs: [][]byte{valueOf("x", -1, 2)}, outputs: [][]byte{valueOf("y")}}), []float64{1, 2}, []int{1, 2}, []float64{4, 2}, []int{1, 2}},
		{"Conv of one padded pixel",
			single("Conv", map[string]any{"pads": []int{0, 1, 0, 0}}, []int{-1, 2, 1, 1}, tensorOf("w", []int{1, 2, 1, 1}, 1, 10), tensorOf("c", []int{1}, 5)),
			[]float64{1, 2}, []int{1, 2, 1, 1}, []float64{5, 26}, []int{1, 1, 1, 2}},
		{"statistics of LayerNormalization", modelOf(17, graphOf{nodes: [][]byte{
			nodeOf("LayerNormalization", []string{"x", "w"}, []string{"z", "mean", "inverse"}, map[string]any{"epsilon": 0.25}),
			nodeOf("Add", []string{"mean", "inverse"}, []string{"s"}, nil), nodeOf("Add", []string{"z", "s"}, []string{"y"}, nil)},
			tensors: [][]byte{tensorOf("w", []int{2}, 0, 0)}, inputs: [][]byte{valueOf("x", -1, 2)}, outputs: [][]byte{valueOf("y")}}),
			[]float64{1, 1, 3, 6}, []int{2, 2}, []float64{3, 3, 4.5 + 1/math.Sqrt(2.5), 4.5 + 1/math.Sqrt(2.5)}, []int{2, 2}},
		{"LayerNormalization with epsilon 0",
			single("LayerNormalization", map[string]any{"epsilon": 0.0}, []int{-1, 2}, tensorOf("w", []int{2}, 1, 2), tensorOf("c", []int{2}, 0, 5)),
			[]float64{1, 3, -4, -8}, []int{2, 2}, []float64{-1, 7, 1, 3}, []int{2, 2}},
		{"RMSNormalization", single("RMSNormalization", map[string]any{"epsilon": 0.5}, []int{-1, 2}, tensorOf("w", []int{2}, 1, 10)),
			[]float64{1, 2, 0, 1}, []int{2, 2}, []float64{1 / math.Sqrt(3), 20 / math.Sqrt(3), 0, 10}, []int{2, 2}},
		{"LpNormalization", single("LpNormalization", map[string]any{"axis": 1}, []int{-1, 2, 2}), []float64{3, 0, 4, 0}, []int{1, 2, 2},
			[]float64{0.6, 0, 0.8, 0}, []int{1, 2, 2}},
		{"LpNormalization by absolute values", single("LpNormalization", map[string]any{"p": 1}, []int{-1, 2}), []float64{3, -1}, []int{1, 2},
			[]float64{0.75, -0.25}, []int{1, 2}},
		{"LpPool", single("LpPool", map[string]any{"kernel_shape": []int{1, 2}, "pads": []int{0, 1, 0, 0}}, []int{-1, 1, 1, 2}),
			[]float64{-3, 4}, []int{1, 1, 1, 2}, []float64{3, 5}, []int{1, 1, 1, 2}},
		{"GlobalLpPool", single("GlobalLpPool", map[string]any{"p": 3}, []int{-1, 1, 1, 3}), []float64{3, -4, 5}, []int{1, 1, 1, 3},
			[]float64{6}, []int{1, 1, 1, 1}},
		{"Sign", single("Sign", nil, []int{-1, 3}), []float64{-3, 0, 0.5}, []int{1, 3}, []float64{-1, 0, 1}, []int{1, 3}},
		{"Shrink", single("Shrink", map[string]any{"lambd": 1.0, "bias": 0.5}, []int{-1, 4}), []float64{-3, -1, 1, 2}, []int{1, 4},
			[]float64{-2.5, 0, 0, 1.5}, []int{1, 4}},
		{"DepthToSpace", single("DepthToSpace", map[string]any{"blocksize": 2}, []int{-1, 8, 1, 1}), []float64{1, 2, 3, 4, 5, 6, 7, 8}, []int{1, 8, 1, 1},
			[]float64{1, 3, 5, 7, 2, 4, 6, 8}, []int{1, 2, 2, 2}},
		{"DepthToSpace of neighbouring channels", single("DepthToSpace", map[string]any{"blocksize": 2, "mode": "CRD"}, []int{-1, 8, 1, 1}),
			[]float64{1, 2, 3, 4, 5, 6, 7, 8}, []int{1, 8, 1, 1}, []float64{1, 2, 3, 4, 5, 6, 7, 8}, []int{1, 2, 2, 2}},
		{"SpaceToDepth", single("SpaceToDepth", map[string]any{"blocksize": 2}, []int{-1, 2, 2, 2}), []float64{1, 2, 3, 4, 5, 6, 7, 8}, []int{1, 2, 2, 2},
			[]float64{1, 5, 2, 6, 3, 7, 4, 8}, []int{1, 8, 1, 1}},
		{"SpaceToDepth to neighbouring channels", single("SpaceToDepth", map[string]any{"blocksize": 2, "mode": "CRD"}, []int{-1, 2, 2, 2}),
			[]float64{1, 2, 3, 4, 5, 6, 7, 8}, []int{1, 2, 2, 2}, []float64{1, 2, 3, 4, 5, 6, 7, 8}, []int{1, 8, 1, 1}},
		{"Gemm", single("Gemm", map[string]any{"transB": 1, "alpha": 2.0}, []int{-1, 2}, tensorOf("w", []int{1, 2}, 3, 5), tensorOf("c", []int{1}, 1)),
			[]float64{1, 1, 2, 0}, []int{2, 2}, []float64{17, 13}, []int{2, 1}},
		{"depthwise Conv", single("Conv", map[string]any{"group": 2, "kernel_shape": []int{1, 1}}, []int{-1, 2, 1, 2}, tensorOf("w", []int{2, 1, 1, 1}, 2, 3)),
			[]float64{1, 2, 3, 4}, []int{1, 2, 1, 2}, []float64{2, 4, 9, 12}, []int{1, 2, 1, 2}},
		{"Conv padded on one side", single("Conv", map[string]any{"pads": []int{0, 1, 0, 0}}, []int{-1, 1, 1, 2}, tensorOf("w", []int{1, 1, 1, 2}, 1, 10)),
			[]float64{1, 2}, []int{1, 1, 1, 2}, []float64{10, 21}, []int{1, 1, 1, 2}},
		{"Conv with a stride larger than its filter", single("Conv", same(1, 2), []int{-1, 1, 1, 4}, tensorOf("w", []int{1, 1, 1, 1}, 1)),
			[]float64{1, 2, 3, 4}, []int{1, 1, 1, 4}, []float64{1, 3}, []int{1, 1, 1, 2}},
		{"LpPool with a stride larger than its window", single("LpPool", same(2, 3), []int{-1, 1, 1, 7}),
			[]float64{3, 4, 9, 0, 1, 9, 2}, []int{1, 1, 1, 7}, []float64{5, 1, 2}, []int{1, 1, 1, 3}},
		{"ConvTranspose to a larger output", transposed("SAME_UPPER", 6), []float64{1, 2}, []int{1, 1, 1, 2}, []float64{1, 0, 0, 2, 0, 0}, []int{1, 1, 1, 6}},
		{"ConvTranspose to a smaller output", transposed("SAME_LOWER", 3), []float64{1, 2}, []int{1, 1, 1, 2}, []float64{0, 0, 2}, []int{1, 1, 1, 3}},
		{"MaxPool rounding up", single("MaxPool", map[string]any{"kernel_shape": []int{1, 2}, "strides": []int{1, 2}, "ceil_mode": 1}, []int{-1, 1, 1, 3}),
			[]float64{-5, -4, -3}, []int{1, 1, 1, 3}, []float64{-4, -3}, []int{1, 1, 1, 2}},
		{"AveragePool with padding",
			single("AveragePool", map[string]any{"kernel_shape": []int{1, 2}, "pads": []int{0, 1, 0, 0}, "count_include_pad": 1}, []int{-1, 1, 1, 2}),
			[]float64{2, 4}, []int{1, 1, 1, 2}, []float64{1, 3}, []int{1, 1, 1, 2}},
		{"BatchNormalization", single("BatchNormalization", map[string]any{"epsilon": 0.0}, []int{-1, 2, 1, 1},
			tensorOf("scale", []int{2}, 2, 1), tensorOf("bias", []int{2}, 1, 0), tensorOf("mean", []int{2}, 1, 3), tensorOf("variance", []int{2}, 4, 9)),
			[]float64{3, 9}, []int{1, 2, 1, 1}, []float64{3, 2}, []int{1, 2, 1, 1}},
		{"Reshape", single("Reshape", nil, []int{-1, 4}, integersOf("shape", 0, 2, -1)), []float64{1, 2, 3, 4}, []int{1, 4}, []float64{1, 2, 3, 4}, []int{1, 2, 2}},
		{"Slice backwards", single("Slice", nil, []int{-1, 3}, integersOf("starts", -1), integersOf("ends", -10), integersOf("axes", 1), integersOf("steps", -1)),
			[]float64{1, 2, 3}, []int{1, 3}, []float64{3, 2, 1}, []int{1, 3}},
		{"Slice backwards from before the first", single("Slice", nil, []int{-1, 3},
			integersOf("starts", -9), integersOf("ends", -10), integersOf("axes", 1), integersOf("steps", -1)),
			[]float64{1, 2, 3}, []int{1, 3}, []float64{1}, []int{1, 1}},
		{"Slice backwards from after the last", single("Slice", nil, []int{-1, 3},
			integersOf("starts", 9), integersOf("ends", 0), integersOf("axes", 1), integersOf("steps", -2)),
			[]float64{1, 2, 3}, []int{1, 3}, []float64{3}, []int{1, 1}},
		{"Pad by reflection", single("Pad", map[string]any{"mode": "reflect"}, []int{-1, 3}, integersOf("pads", 0, 2, 0, 1)),
			[]float64{1, 2, 3}, []int{1, 3}, []float64{3, 2, 1, 2, 3, 2}, []int{1, 6}},
		{"ReduceMean", single("ReduceMean", map[string]any{"axes": []int{1}, "keepdims": 0}, []int{-1, 2}), []float64{1, 3}, []int{1, 2}, []float64{2}, []int{1}},
		{"ReduceL2", single("ReduceL2", map[string]any{"axes": []int{1}}, []int{-1, 2}), []float64{3, 4}, []int{1, 2}, []float64{5}, []int{1, 1}},
		{"ReduceLogSumExp", single("ReduceLogSumExp", map[string]any{"axes": []int{1}}, []int{-1, 2}), []float64{200, 200 + math.Log(3)}, []int{1, 2},
			[]float64{200 + math.Log(4)}, []int{1, 1}},
		{"ReduceLogSumExp after a masked element", single("ReduceLogSumExp", map[string]any{"axes": []int{1}}, []int{-1, 3}), []float64{-1e30, 1, 1}, []int{1, 3},
			[]float64{1 + math.Log(2)}, []int{1, 1}},
		{"ReduceL1 of each element", single("ReduceL1", map[string]any{"noop_with_empty_axes": 1}, []int{-1, 2}), []float64{3, -4}, []int{1, 2},
			[]float64{3, 4}, []int{1, 2}},
		{"Resize by a factor below 0.7",
			single("Resize", map[string]any{"mode": "nearest"}, []int{-1, 10}, tensorOf("roi", []int{0}), tensorOf("scales", []int{2}, 1, 0.7)),
			[]float64{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}, []int{1, 10}, []float64{0, 2, 3, 4, 6, 7, 9}, []int{1, 7}},
		{"Resize by a factor above 1.6",
			single("Resize", map[string]any{"mode": "nearest", "nearest_mode": "floor", "coordinate_transformation_mode": "asymmetric"}, []int{-1, 6},
				tensorOf("roi", []int{0}), tensorOf("scales", []int{2}, 1, 1.6)),
			[]float64{0, 1, 2, 3, 4, 5}, []int{1, 6}, []float64{0, 0, 1, 1, 2, 3, 3, 4, 5}, []int{1, 9}},
		{"Resize to the nearest",
			single("Resize", map[string]any{"mode": "nearest"}, []int{-1, 1, 2}, tensorOf("roi", []int{0}), tensorOf("scales", []int{3}, 1, 1, 2)),
			[]float64{3, 4}, []int{1, 1, 2}, []float64{3, 3, 4, 4}, []int{1, 1, 4}},
		{"Resize by lines", single("Resize", map[string]any{"mode": "linear"}, []int{-1, 1, 2}, tensorOf("roi", []int{0}), tensorOf("scales", []int{3}, 1, 1, 2)),
			[]float64{3, 4}, []int{1, 1, 2}, []float64{3, 3.25, 3.75, 4}, []int{1, 1, 4}},
		{"Gather of many indices", single("Gather", map[string]any{"axis": 1}, []int{-1, 3}, integersOf("at", many...)),
			[]float64{1, 2, 3}, []int{1, 3}, picked, []int{1, 2400}},
		{"Mod", added("Mod", nil, tensorOf("a", []int{3}, 7, -7, 6), tensorOf("b", []int{1}, 3)), []float64{0, 0, 0}, []int{1, 3}, []float64{1, 2, 0}, []int{1, 3}},
		{"CumSum", added("CumSum", nil, tensorOf("a", []int{3}, 1, 2, 3), integersOf("b", 0)), []float64{0, 0, 1}, []int{1, 3}, []float64{1, 3, 7}, []int{1, 3}},
		{"Sin", added("Sin", nil, tensorOf("a", []int{3}, 0, 1, 2)), []float64{0, 0, 0}, []int{1, 3}, []float64{0, math.Sin(1), math.Sin(2)}, []int{1, 3}},
		{"ScatterND",
			added("ScatterND", nil, tensorOf("a", []int{3}, 1, 2, 3), tensorWith("b", Int64, []int{1, 1}, message(7, []byte{2})), tensorOf("c", []int{1}, 9)),
			[]float64{0, 0, 0}, []int{1, 3}, []float64{1, 2, 9}, []int{1, 3}},
		{"ScatterND to a slice of each axis",
			single("ScatterND", nil, []int{-1, 4},
				tensorWith("at", Int64, []int{2, 2, 2}, message(7, []byte{0, 1, 0, 2, 1, 1, 1, 2})), tensorOf("to", []int{2, 2}, 9, 8, 7, 6)),
			[]float64{1, 2, 3, 4, 5, 6, 7, 8}, []int{2, 4}, []float64{1, 9, 8, 4, 5, 7, 6, 8}, []int{2, 4}},
		{"ScatterND to rows",
			single("ScatterND", nil, []int{-1, 2}, tensorWith("at", Int64, []int{2, 1}, message(7, []byte{1, 2})), tensorOf("to", []int{2, 2}, 9, 8, 7, 6)),
			[]float64{1, 2, 3, 4, 5, 6}, []int{3, 2}, []float64{1, 2, 9, 8, 7, 6}, []int{3, 2}},
		{"GatherND of elements", single("GatherND", nil, []int{-1, 3}, tensorWith("at", Int64, []int{2, 2}, message(7, []byte{1, 0, 0, 2}))),
			[]float64{1, 2, 3, 4, 5, 6}, []int{2, 3}, []float64{4, 3}, []int{2}},
		{"GatherND of rows", single("GatherND", nil, []int{-1, 3}, tensorWith("at", Int64, []int{2, 1, 1}, message(7, []byte{1, 0}))),
			[]float64{1, 2, 3, 4, 5, 6}, []int{2, 3}, []float64{4, 5, 6, 1, 2, 3}, []int{2, 1, 3}},
		{"GatherND in batches",
			single("GatherND", map[string]any{"batch_dims": 1}, []int{-1, 3}, tensorWith("at", Int64, []int{2, 2, 1}, message(7, []byte{1, 0, 2, 2}))),
			[]float64{1, 2, 3, 4, 5, 6}, []int{2, 3}, []float64{2, 1, 6, 6}, []int{2, 2}},
		{"Softmax", single("Softmax", map[string]any{"axis": 1}, []int{-1, 2, 1}), []float64{0, math.Log(3)}, []int{1, 2, 1}, []float64{0.25, 0.75}, []int{1, 2, 1}},
	} {
		t.Run(row.name, func(t *testing.T) {
			m, err := Read(row.model, nil)
			if err != nil {
				t.Fatal(err)
			}
			network, err := m.Network(Options{Frozen: func(string) bool { return true }})
			if err != nil {
				t.Fatal(err)
			}
			got, err := network.evaluate("y", &storedTensor{Type: Float32, Shape: row.shape, floats: row.x})
			if err != nil {
				t.Fatal(err)
			}
			if err := near(got, &ndarray{row.to, Float32, row.want}, 1e-6, 1e-6); err != nil {
				t.Error(err)
			}
		})
	}
}

// The fan-in of a weight depends on the node that uses it.
func TestFanIns(t *testing.T) {
	for _, row := range []struct {
		op         string
		attributes map[string]any
		left       bool // the weight is the first input
		shape      []int
		want       int // 0 for none
	}{
		{"MatMul", nil, false, []int{5, 7}, 5},
		{"MatMul", nil, false, []int{3, 5, 7}, 5},
		{"MatMul", nil, true, []int{7, 5}, 5},
		{"Gemm", nil, false, []int{5, 7}, 5},
		{"Gemm", map[string]any{"transB": 1}, false, []int{7, 5}, 5},
		{"Gemm", nil, true, []int{7, 5}, 5},
		{"Gemm", map[string]any{"transA": 1}, true, []int{5, 7}, 5},
		{"ConvTranspose", map[string]any{"group": 2}, false, []int{4, 7, 3, 3}, 18},
		{"Conv", nil, false, []int{7, 5, 3, 3}, 0},
		{"MatMul", nil, false, []int{5}, 0},
		{"Einsum", map[string]any{"equation": "bij, jk -> bik"}, false, []int{5, 7}, 5},
		{"Einsum", map[string]any{"equation": "bhij,hkj->bhik"}, false, []int{3, 7, 5}, 5},
		{"Einsum", map[string]any{"equation": "kj,bj"}, true, []int{7, 5}, 5},
	} {
		elements := 1
		for _, extent := range row.shape {
			elements *= extent
		}
		inputs := []string{"x", "w"}
		if row.left {
			slices.Reverse(inputs)
		}
		m, err := Read(modelOf(13, graphOf{
			nodes:   [][]byte{nodeOf(row.op, inputs, []string{"y"}, row.attributes)},
			tensors: [][]byte{tensorOf("w", row.shape, make([]float64, elements)...)},
			inputs:  [][]byte{valueOf("x", -1, 5)}, outputs: [][]byte{valueOf("y")},
		}), nil)
		if err != nil {
			t.Fatal(err)
		}
		n, err := m.Network(Options{})
		if err != nil {
			t.Fatal(err)
		}
		if got := n.FanIns(); got["w"] != row.want || row.want == 0 && len(got) > 0 {
			t.Errorf("%s %v of %v: %v, want %d", row.op, row.attributes, row.shape, got, row.want)
		}
	}
}

// The features are the input of the last fully connected layer, or the output without one.
func TestFeatures(t *testing.T) {
	for op, want := range map[string]string{"MatMul": "x", "Mul": "y"} {
		m, err := Read(modelOf(13, graphOf{
			nodes:   [][]byte{nodeOf(op, []string{"x", "w"}, []string{"y"}, nil)},
			tensors: [][]byte{tensorOf("w", []int{1, 1}, 2)},
			inputs:  [][]byte{valueOf("x", -1, 1)}, outputs: [][]byte{valueOf("y")},
		}), nil)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := m.Features(); got != want || err != nil {
			t.Errorf("%s: features are %q, want %q (%v)", op, got, want, err)
		}
	}
}

// Nodes that read each other's outputs make no weight.
func TestFeaturesOfACycle(t *testing.T) {
	m, err := Read(modelOf(13, graphOf{
		nodes: [][]byte{
			nodeOf("Identity", []string{"b"}, []string{"a"}, nil), nodeOf("Identity", []string{"a"}, []string{"b"}, nil),
			nodeOf("MatMul", []string{"x", "a"}, []string{"y"}, nil),
		},
		inputs: [][]byte{valueOf("x", -1, 1)}, outputs: [][]byte{valueOf("y")},
	}), nil)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := m.Features(); got != "y" || err != nil {
		t.Errorf("features are %q, want y (%v)", got, err)
	}
}

// Without axes, Squeeze leaves the axis of the examples in a batch of one.
func TestSqueezeOfOneExample(t *testing.T) {
	m, err := Read(single("Squeeze", nil, []int{-1, 3, 1, 1}), nil)
	if err != nil {
		t.Fatal(err)
	}
	for batch := 1; batch < 3; batch++ {
		x := &storedTensor{Type: Float32, Shape: []int{batch, 3, 1, 1}, floats: []float64{1, 2, 3, 4, 5, 6}[:3*batch]}
		y, err := evaluate(m, "y", x)
		if err != nil {
			t.Fatal(err)
		}
		if want := []int{batch, 3}; !slices.Equal(y.shape, want) {
			t.Errorf("%d examples become %v, want %v", batch, y.shape, want)
		}
	}
}

// A convolution, batch normalisation with shared statistics, and a linear layer: parameters with
// their names and starting values, a frozen part, a cut, and batches of any size although the file
// has 1.
func small(t *testing.T) *Model {
	t.Helper()
	m, err := Read(modelOf(13, graphOf{
		nodes: [][]byte{
			nodeOf("Conv", []string{"x", "conv.weight"}, []string{"c"}, map[string]any{"pads": []int{1, 1, 1, 1}}),
			nodeOf("Identity", []string{"bn.var"}, []string{"other.var"}, nil),
			nodeOf("BatchNormalization", []string{"c", "bn.weight", "bn.bias", "bn.mean", "other.var"}, []string{"n"}, nil),
			nodeOf("Relu", []string{"n"}, []string{"r"}, nil),
			nodeOf("GlobalAveragePool", []string{"r"}, []string{"p"}, nil),
			nodeOf("Reshape", []string{"p", "flat"}, []string{"features"}, nil),
			nodeOf("Gemm", []string{"features", "fc.weight"}, []string{"logits"}, nil),
		},
		tensors: [][]byte{
			tensorOf("conv.weight", []int{2, 1, 3, 3}, slices.Repeat([]float64{0.5, -0.25, 1}, 6)...),
			tensorOf("bn.weight", []int{2}, 1, 2), tensorOf("bn.bias", []int{2}, 0, 1), tensorOf("bn.mean", []int{2}, 0.5, 0), tensorOf("bn.var", []int{2}, 1, 4),
			integersOf("flat", 1, -1), tensorOf("fc.weight", []int{2, 3}, 1, 2, 3, 4, 5, 6),
		},
		inputs: [][]byte{valueOf("x", 1, 1, 4, 4)}, outputs: [][]byte{valueOf("logits", 1, 3)},
	}), nil)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func TestParameters(t *testing.T) {
	parameters := func(o Options) string {
		n, err := small(t).Network(o)
		if err != nil {
			t.Fatal(err)
		}
		b := graph.New(tensor.Float32)
		y := n.Apply(b, b.Data("images", tensor.Float32, 5, 1, 4, 4))
		if b.Err() != nil {
			t.Fatal(b.Err())
		}
		b.Output("y", y)
		p, err := b.Compile()
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, q := range p.Parameters() {
			names = append(names, fmt.Sprint(q.Name, q.Shape))
		}
		return strings.Join(names, " ") + fmt.Sprint(" -> ", graph.ShapeOf(y))
	}
	for want, o := range map[string]Options{
		"conv.weight[2 1 3 3] bn.weight[2] bn.bias[2] fc.weight[2 3] -> [5 3]": {},
		"conv.weight[2 1 3 3] bn.weight[2] bn.bias[2] -> [5 2]":                {Output: "features"},
		"fc.weight[2 3] -> [5 3]":                                              {Frozen: func(name string) bool { return name != "fc.weight" }},
	} {
		if got := parameters(o); got != want {
			t.Errorf("parameters are %s, want %s", got, want)
		}
	}
}

// Frozen weights give the same outputs as parameters that start from the same values.
func TestFrozenIsTheSame(t *testing.T) {
	x := &storedTensor{Type: Float32, Shape: []int{2, 1, 4, 4}, floats: make([]float64, 32)}
	for i := range x.floats {
		x.floats[i] = math.Sin(float64(i))
	}
	want, err := evaluate(small(t), "logits", x)
	if err != nil {
		t.Fatal(err)
	}
	n, err := small(t).Network(Options{Frozen: func(string) bool { return true }})
	if err != nil {
		t.Fatal(err)
	}
	got, err := n.evaluate("logits", x)
	if err != nil {
		t.Fatal(err)
	}
	if err := near(got, want, 1e-6, 1e-7); err != nil {
		t.Error(err)
	}
}

func TestErrors(t *testing.T) {
	x, y := [][]byte{valueOf("x", -1, 2)}, [][]byte{valueOf("y")}
	apply := func(op string, attributes map[string]any, inputs ...string) graphOf {
		return graphOf{nodes: [][]byte{nodeOf(op, append([]string{"x"}, inputs...), []string{"y"}, attributes)}, inputs: x, outputs: y}
	}
	with := func(g graphOf, tensors ...[]byte) graphOf {
		g.tensors = tensors
		return g
	}
	valid := modelOf(13, apply("Relu", nil))
	constant := func(shape ...int) []byte {
		g := with(apply("Add", nil, "c"), integersOf("s", shape...))
		g.nodes = append([][]byte{nodeOf("ConstantOfShape", []string{"s"}, []string{"c"}, nil)}, g.nodes...)
		return modelOf(13, g)
	}
	twice := func(name string) []byte {
		g := apply("Relu", nil)
		g.nodes = append([][]byte{nodeOf("Neg", []string{"x"}, []string{name}, nil)}, g.nodes...)
		return modelOf(13, g)
	}
	weight := func(shape []int, values ...float64) []byte {
		return modelOf(13, with(apply("Relu", nil), tensorOf("w", shape, values...)))
	}
	other := func(t []byte) []byte { return modelOf(13, with(apply("Relu", nil), t)) }
	training := apply("BatchNormalization", map[string]any{"training_mode": 1}, "w", "w", "w", "w")
	grouped := apply("Conv", map[string]any{"group": 3}, "w")
	grouped.inputs = [][]byte{valueOf("x", -1, 2, 1, 1)}
	same := map[string]any{"auto_pad": "SAME_UPPER", "strides": []int{1, 3}}
	image := func(op string, attributes map[string]any) graphOf { // of x [B 2 1 6]
		g := apply(op, attributes)
		if op != "MaxPool" {
			g = apply(op, attributes, "w")
		}
		g.inputs = [][]byte{valueOf("x", -1, 2, 1, 6)}
		return g
	}
	before := func(n []byte) []byte {
		g := with(apply("Add", nil, "c"), integersOf("a", 1, 2), integersOf("b", 0))
		g.nodes = append([][]byte{n}, g.nodes...)
		return modelOf(13, g)
	}
	for name, row := range map[string]struct {
		content []byte
		want    string
	}{
		"empty":              {nil, "it has no graph: is it an ONNX model?"},
		"text":               {[]byte("<html><body>404</body></html>"), "onnx: "},
		"cut off":            {valid[:len(valid)-3], "is cut off or damaged"},
		"old":                {modelOf(3, apply("Relu", nil)), "opset must be at least 6, got 3"},
		"unknown operator":   {modelOf(13, apply("NonMaxSuppression", nil)), "NonMaxSuppression in node my NonMaxSuppression"},
		"unknown value":      {modelOf(13, apply("Add", nil, "nowhere")), `no node makes the value "nowhere"`},
		"no shape":           {modelOf(13, apply("Reshape", nil)), "node my Reshape (Reshape): input 1, the shape, is missing"},
		"shape left out":     {modelOf(13, apply("Expand", nil, "")), "node my Expand (Expand): input 1, the shape, is missing"},
		"no extents":         {before(nodeOf("ConstantOfShape", nil, []string{"c"}, nil)), "input 0, the shape, is missing"},
		"no operand":         {before(nodeOf("Mul", []string{"a", ""}, []string{"c"}, nil)), "node my Mul (Mul): must have at least 2 inputs, got 1"},
		"no first operand":   {before(nodeOf("Exp", []string{""}, []string{"c"}, nil)), "node my Exp (Exp): input 0 is missing"},
		"no divisor":         {before(nodeOf("Div", []string{"a", ""}, []string{"c"}, nil)), "must have at least 2 inputs"},
		"nothing to compare": {before(nodeOf("Less", []string{"a", ""}, []string{"c"}, nil)), "must have at least 2 inputs"},
		"range of vectors":   {before(nodeOf("Range", []string{"a", "a", "b"}, []string{"c"}, nil)), "start, limit and delta must be numbers, got shape [2]"},
		"missing input":      {modelOf(13, apply("Gemm", nil)), "node my Gemm (Gemm): must have at least 2 inputs, got 1"},
		"training":           {modelOf(13, with(training, tensorOf("w", []int{2}, 1, 1))), "export the model in eval mode"},
		"wrong size":         {weight([]int{3}, 1, 2), "tensor w: shape [3] needs 3 elements, the file has 2"},
		"huge":               {weight([]int{1 << 40, 1 << 40}, 1, 2), "at most 2147483648 elements"},
		"negative":           {weight([]int{-1}, 1, 2), "extents of at least 0"},
		"1 GB of zeros":      {constant(1<<14, 1<<14), "a constant must have at most"},
		"100 GB of zeros":    {constant(25000, 1000000), "at most 2147483648 elements"},
		"100 GB of tiles":    {modelOf(13, with(apply("Tile", nil, "r"), integersOf("r", 1<<20, 1<<20))), "too large"},
		"another file":       {other(tensorWith("w", Float32, []int{2}, message(13, text(1, "location"), text(2, "w.bin")), whole(14, 1))), `is in the file "w.bin"`},
		"a value made twice": {twice("y"), `node my Relu (Relu): the value "y" is already made by node my Neg (Neg)`},
		"an input made":      {twice("x"), `node my Neg (Neg): the value "x" is already an input or a tensor of the model`},
		"strings":            {other(tensorWith("w", 8, []int{1})), "elements of type 8 are not supported"},
		"rest of zero":       {before(nodeOf("Mod", []string{"a", "b"}, []string{"c"}, nil)), "division of an integer by zero"},
		"same for a Conv": {modelOf(13, with(image("Conv", same), tensorOf("w", []int{1, 2, 1, 1}, 1, 1))),
			"auto_pad SAME_UPPER with windows of 1 and a stride of 3 leaves out 2 of 6 elements, which programs choose differently: export the model with pads"},
		"same for a pool": {modelOf(13, image("MaxPool", map[string]any{"auto_pad": "SAME_LOWER", "kernel_shape": []int{1, 1}, "strides": []int{1, 3}})),
			"auto_pad SAME_LOWER with windows of 1 and a stride of 3"},
		"same for a ConvTranspose": {modelOf(13, with(image("ConvTranspose", same), tensorOf("w", []int{2, 1, 1, 1}, 1, 1))),
			"auto_pad SAME_UPPER with filters of 1 and a stride of 3 has outputs whose size depends on the program"},
		"large ConvTranspose": {
			modelOf(13, with(image("ConvTranspose", map[string]any{"output_shape": []int{1, 7}}), tensorOf("w", []int{2, 1, 1, 1}, 1, 1))),
			"output_shape must be less than the stride, 1, larger than without padding, got [1 7]"},
		"groups": {modelOf(13, with(grouped, tensorOf("w", []int{2, 1, 1, 1}, 1, 1))), "groups must divide 2 channels and 2 filters, got 3"},
	} {
		m, err := Read(row.content, nil)
		if err == nil {
			var n *Network
			if n, err = m.Network(Options{}); err == nil {
				shape := []int{3, 2}
				if declared := m.Inputs[0].Shape; len(declared) == 4 {
					shape = append([]int{3}, declared[1:]...)
				}
				b := graph.New(tensor.Float32)
				n.Apply(b, b.Data("images", tensor.Float32, shape...))
				err = b.Err()
			}
		}
		if err == nil || !strings.Contains(err.Error(), row.want) {
			t.Errorf("%s: error is %v, want it to have %q", name, err, row.want)
		}
	}
}

func TestExternalData(t *testing.T) {
	dir := t.TempDir()
	weight := func(location string, entries ...string) []byte {
		parts := [][]byte{message(13, text(1, "location"), text(2, location)), whole(14, 1)}
		for i := 0; i < len(entries); i += 2 {
			parts = append(parts, message(13, text(1, entries[i]), text(2, entries[i+1])))
		}
		return tensorWith("w", Float32, []int{2}, parts...)
	}
	if err := os.WriteFile(filepath.Join(dir, "w.bin"), []byte("????\x00\x00\x80\x3f\x00\x00\x00\x40"), 0o644); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "model.onnx")
	open := func(w []byte) (*Model, error) {
		if err := os.WriteFile(path, modelOf(13, graphOf{
			nodes: [][]byte{nodeOf("Add", []string{"x", "w"}, []string{"y"}, nil)}, tensors: [][]byte{w},
			inputs: [][]byte{valueOf("x", -1, 2)}, outputs: [][]byte{valueOf("y")},
		}), 0o644); err != nil {
			t.Fatal(err)
		}
		return Open(path)
	}
	m, err := open(weight("w.bin", "offset", "4", "length", "8"))
	if err != nil {
		t.Fatal(err)
	}
	got, err := evaluate(m, "y", &storedTensor{Type: Float32, Shape: []int{1, 2}, floats: []float64{10, 20}})
	if err != nil || !slices.Equal(got.values, []float64{11, 22}) {
		t.Errorf("x + w = %v, %v, want [11 22]", got, err)
	}
	constant := func(w []byte) []byte {
		return modelOf(13, graphOf{
			nodes:  [][]byte{nodeOf("Constant", nil, []string{"w"}, map[string]any{"value": w}), nodeOf("Add", []string{"x", "w"}, []string{"y"}, nil)},
			inputs: [][]byte{valueOf("x", -1, 2)}, outputs: [][]byte{valueOf("y")},
		})
	}
	if err := os.WriteFile(path, constant(weight("w.bin", "offset", "4")), 0o644); err != nil {
		t.Fatal(err)
	}
	if m, err = Open(path); err != nil {
		t.Fatal(err)
	}
	got, err = evaluate(m, "y", &storedTensor{Type: Float32, Shape: []int{1, 2}, floats: []float64{10, 20}})
	if err != nil || !slices.Equal(got.values, []float64{11, 22}) {
		t.Errorf("x + w = %v, %v, want [11 22], with w the attribute of a node", got, err)
	}
	want := "node my Constant (Constant): attribute value: bytes 8 to 16"
	if _, err := Read(constant(weight("w.bin", "offset", "8", "length", "8")), func(string) ([]byte, error) { return make([]byte, 12), nil }); err == nil ||
		!strings.Contains(err.Error(), want) {
		t.Errorf("error is %v, want it to have %q", err, want)
	}
	for want, w := range map[string][]byte{
		"must be a file below the model's directory": weight("../w.bin"),
		`must be in the file "w.bin", which has 12`:  weight("w.bin", "offset", "8", "length", "8"),
		"offset must be at least 0":                  weight("w.bin", "offset", "-4"),
		"no such file":                               weight("v.bin"),
		"shape [2] needs 2 elements, the file has 3": weight("w.bin"),
	} {
		if _, err := open(w); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error is %v, want it to have %q", err, want)
		}
	}
}

func TestHalfPrecision(t *testing.T) {
	for bits, want := range map[uint16]float64{
		0x3c00: 1, 0xc000: -2, 0x0001: 0x1p-24, 0x03ff: 1023 * 0x1p-24, 0x7bff: 65504, 0x7c00: math.Inf(1), 0xfc00: math.Inf(-1), 0: 0,
	} {
		if got := halfToFloat(bits); got != want {
			t.Errorf("halfToFloat(%#x) = %v, want %v", bits, got, want)
		}
	}
	if !math.IsNaN(halfToFloat(0x7e00)) {
		t.Error("halfToFloat(0x7e00) is not NaN")
	}
}

// FuzzRead: any file gives a model or an error, and a model's network applies or gives an error.
func FuzzRead(f *testing.F) {
	f.Add(single("Conv", map[string]any{"pads": []int{1, 1, 1, 1}, "group": 1}, []int{-1, 1, 4, 4}, tensorOf("w", []int{1, 1, 3, 3}, make([]float64, 9)...)))
	f.Add(single("Slice", nil, []int{-1, 3}, integersOf("starts", -1), integersOf("ends", -10), integersOf("axes", 1), integersOf("steps", -1)))
	f.Add(single("MaxPool", map[string]any{"kernel_shape": []int{1, 2}, "ceil_mode": 1}, []int{-1, 1, 1, 3}))
	f.Add(single("Reshape", nil, []int{-1, 4}, integersOf("shape", 0, 2, -1)))
	x, y := [][]byte{valueOf("x", -1, 2)}, [][]byte{valueOf("y")}
	one, two := callOf("Affine", []string{"x", "x"}, []string{"y"}, map[string]any{"scale": 3.0}), callOf("Twice", []string{"x"}, []string{"y"}, nil)
	f.Add(modelOf(13, graphOf{nodes: [][]byte{one}, inputs: x, outputs: y}, affine()))
	f.Add(modelOf(13, graphOf{nodes: [][]byte{two}, inputs: x, outputs: y}, affine(), functionOf("Twice", 13, []string{"x"}, []string{"y"},
		callOf("Affine", []string{"x", ""}, []string{"t"}, nil), callOf("Affine", []string{"t"}, []string{"", "y"}, nil))))
	f.Add(modelOf(15, graphOf{nodes: ifOf(1, 2, branchOf("x"), branchOf("t", nodeOf("Neg", []string{"x"}, []string{"t"}, nil))), inputs: x, outputs: y}))
	inner := branchOf("y", ifOf(1, 2, branchOf("t", nodeOf("Neg", []string{"x"}, []string{"t"}, nil)), branchOf("x"))...)
	f.Add(modelOf(15, graphOf{nodes: ifOf(0, 1, inner, inner), inputs: x, outputs: y}))
	f.Fuzz(func(t *testing.T, content []byte) {
		m, err := Read(content, nil)
		if err != nil {
			return
		}
		n, err := m.Network(Options{})
		if err != nil {
			return
		}
		shape := slices.Clone(m.Inputs[0].Shape)
		for i, extent := range shape {
			if extent < 1 || extent > 8 {
				shape[i] = 2
			}
		}
		b := graph.New(tensor.Float32)
		n.Apply(b, b.Data("images", tensor.Float32, shape...))
	})
}
