package onnx

import (
	"slices"
	"strings"
	"testing"

	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/tensor"
)

// fixed is a model with x [1 2 6], declared for one example, to y.
func fixed(tensors [][]byte, nodes ...[]byte) []byte {
	return modelOf(18, graphOf{nodes: nodes, tensors: tensors, inputs: [][]byte{valueOf("x", 1, 2, 6)}, outputs: [][]byte{valueOf("y")}})
}

// step is a node without attributes.
func step(op, to string, from ...string) []byte { return nodeOf(op, from, []string{to}, nil) }

func turned(to, from string, axes ...int) []byte {
	return nodeOf("Transpose", []string{from}, []string{to}, map[string]any{"perm": axes})
}

// A model that was exported for one example gives the same answers for a batch, wherever its batch
// axis is.
func TestDeclaredBatch(t *testing.T) {
	weights := make([]float64, 36)
	for i := range weights {
		weights[i] = float64(i%7) - 3
	}
	weight := tensorOf("w", []int{6, 6}, weights...)
	for _, row := range []struct {
		name  string
		model []byte
	}{
		{"behind another axis", fixed([][]byte{integersOf("heads", 2, 1, 3, 2), integersOf("back", 1, 12)},
			turned("a", "x", 1, 0, 2), step("Reshape", "b", "a", "heads"), turned("c", "b", 1, 2, 0, 3), step("Reshape", "y", "c", "back"))},
		{"merged with the axis before it", fixed([][]byte{weight, integersOf("rows", 2, 6), integersOf("back", 2, 1, 6)},
			turned("a", "x", 1, 0, 2), step("Reshape", "b", "a", "rows"), step("MatMul", "c", "b", "w"), step("Reshape", "d", "c", "back"), turned("y", "d", 1, 0, 2))},
		{"merged as others are", fixed([][]byte{weight, integersOf("heads", 2, 1, 3, 2), integersOf("rows", 2, 6), integersOf("back", 2, 1, 6)},
			turned("a", "x", 1, 0, 2), step("Reshape", "b", "a", "heads"), step("Reshape", "c", "b", "rows"), step("MatMul", "d", "c", "w"),
			step("Reshape", "e", "d", "back"), turned("y", "e", 1, 0, 2))},
		{"behind an axis of one row, which heads divide and rows remove", fixed([][]byte{weight, integersOf("rowAxis", 1), integersOf("heads", 1, 3, 2),
			integersOf("rows", 1, 6), integersOf("back", 1, 1, 6), tensorWith("first", Int64, nil, message(7, []byte{0}))},
			step("ReduceMean", "mean", "x", "rowAxis"), turned("a", "mean", 1, 0, 2), step("Reshape", "b", "a", "heads"), turned("c", "b", 1, 0, 2),
			step("Softmax", "d", "c"), turned("e", "d", 1, 0, 2), step("Reshape", "f", "e", "rows"), step("MatMul", "g", "f", "w"),
			step("Reshape", "h", "g", "back"), turned("i", "h", 1, 0, 2), nodeOf("Gather", []string{"i", "first"}, []string{"y"}, map[string]any{"axis": 1}))},
		{"merged with the axes after it", fixed([][]byte{integersOf("rows", 4, 3), integersOf("back", 1, 2, 6)},
			step("Reshape", "a", "x", "rows"), step("Softmax", "b", "a"), step("Reshape", "y", "b", "back"))},
		{"merged by Flatten", fixed([][]byte{weight, integersOf("back", 2, 1, 6)},
			turned("a", "x", 1, 0, 2), nodeOf("Flatten", []string{"a"}, []string{"b"}, map[string]any{"axis": 2}),
			step("MatMul", "c", "b", "w"), step("Reshape", "d", "c", "back"), turned("y", "d", 1, 0, 2))},
		{"an open extent", fixed([][]byte{integersOf("open", 2, -1, 3)},
			turned("a", "x", 1, 0, 2), step("Reshape", "b", "a", "open"), turned("y", "b", 1, 0, 2))},
		{"a Gather from all elements", fixed([][]byte{integersOf("all", -1), integersOf("picked", 3, 0, 11, 7), integersOf("back", 1, 4)},
			step("Reshape", "a", "x", "all"), step("Reshape", "indices", "picked", "back"), step("Gather", "y", "a", "indices"))},
		{"a class token", fixed([][]byte{tensorOf("token", []int{1, 1, 6}, 1, 2, 3, 4, 5, 6)},
			nodeOf("Concat", []string{"token", "x"}, []string{"y"}, map[string]any{"axis": 1}))},
		{"an Einsum with the batch in different places", fixed(nil, turned("a", "x", 1, 2, 0),
			nodeOf("Einsum", []string{"a", "x"}, []string{"y"}, map[string]any{"equation": "ijb,bik->bjk"}))},
		{"a ScatterND to a slice", fixed([][]byte{tensorWith("at", Int64, []int{1, 1, 2, 3}, message(7, []byte{0, 1, 2, 0, 1, 3})),
			integersOf("one", 1), integersOf("two", 2), integersOf("four", 4)},
			step("Slice", "row", "x", "one", "two", "one"), step("Slice", "part", "row", "two", "four", "two"),
			step("Neg", "negative", "part"), step("ScatterND", "y", "x", "at", "negative"))},
		{"sizes of a Resize", fixed([][]byte{integersOf("sizes", 1, 2, 3)}, step("Resize", "y", "x", "", "", "sizes"))},
		{"sizes of a Resize that keeps proportions", fixed([][]byte{integersOf("sizes", 1, 4, 12)},
			nodeOf("Resize", []string{"x", "", "", "sizes"}, []string{"y"}, map[string]any{"keep_aspect_ratio_policy": "not_larger"}))},
	} {
		m, err := Read(row.model, nil)
		if err != nil {
			t.Fatal(err)
		}
		batch := &storedTensor{Type: Float32, Shape: []int{3, 2, 6}}
		var want []float64
		for i := range 3 {
			one := &storedTensor{Type: Float32, Shape: []int{1, 2, 6}}
			for k := range 12 {
				one.floats = append(one.floats, float64((5*k+7*i)%11))
			}
			y, err := evaluate(m, "y", one)
			if err != nil {
				t.Fatalf("%s: %v", row.name, err)
			}
			batch.floats, want = append(batch.floats, one.floats...), append(want, y.values...)
		}
		got, err := evaluate(m, "y", batch)
		if err != nil {
			t.Errorf("%s: %v", row.name, err)
			continue
		}
		if !slices.Equal(got.values, want) {
			t.Errorf("%s: %v of shape %v, want %v", row.name, got.values, got.shape, want)
		}
	}
}

// A model that was exported for two examples may have this size in the shape of an Expand.
// Constants of two examples are an error.
func TestDeclaredBatchOfTwo(t *testing.T) {
	two := func(tensors [][]byte, nodes ...[]byte) *Model {
		m, err := Read(modelOf(18, graphOf{nodes: nodes, tensors: tensors, inputs: [][]byte{valueOf("x", 2, 2)}, outputs: [][]byte{valueOf("y")}}), nil)
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
	x := &storedTensor{Type: Float32, Shape: []int{3, 2}, floats: []float64{1, 2, 3, 4, 5, 6}}
	expanded := two([][]byte{integersOf("axis", 1), integersOf("wide", 2, 2)}, step("ReduceSum", "a", "x", "axis"), step("Expand", "y", "a", "wide"))
	got, err := evaluate(expanded, "y", x)
	if err != nil {
		t.Fatal(err)
	}
	if err := near(got, &ndarray{[]int{3, 2}, Float32, []float64{3, 3, 7, 7, 11, 11}}, 0, 0); err != nil {
		t.Error(err)
	}
	n, err := two([][]byte{tensorOf("c", []int{2, 1}, 7, 7)}, nodeOf("Concat", []string{"x", "c"}, []string{"y"}, map[string]any{"axis": 1})).Network(Options{})
	if err != nil {
		t.Fatal(err)
	}
	b := graph.New(tensor.Float32)
	n.Apply(b, b.Data("x", tensor.Float32, 3, 2))
	if err := b.Err(); err == nil || !strings.Contains(err.Error(), "for its declared batch of 2 the model has no such error: "+exportDynamic) {
		t.Errorf("error is %v, want it to advise a dynamic batch size", err)
	}
}

// What cannot hold for another batch size is an error.
func TestDeclaredBatchErrors(t *testing.T) {
	for _, row := range []struct {
		name  string
		model []byte
		want  string
	}{
		{"the first example", fixed([][]byte{integersOf("first", 0)}, step("Gather", "y", "x", "first")), "axis 0 of [1 2 6] contains the batch"},
		{"a part of a merged axis", fixed([][]byte{integersOf("rows", 2, 6), integersOf("one", 1), integersOf("two", 2), integersOf("axis", 0)},
			step("Reshape", "a", "x", "rows"), step("Slice", "y", "a", "one", "two", "axis")), "axis 0 of [2 6] contains the batch"},
		{"an output without the batch", fixed([][]byte{integersOf("rows", 2, 6)}, turned("a", "x", 1, 0, 2), step("Reshape", "y", "a", "rows")),
			"value y has shape [2 6] for a batch of 1 and [6 6] for a batch of 3"},
		{"a mean of all elements", fixed(nil, step("ReduceMean", "a", "x"), step("Sub", "y", "x", "a")), "value a has shape [1 1 1]"},
		{"products of examples", fixed([][]byte{integersOf("rows", 1, 12)}, step("Reshape", "a", "x", "rows"), turned("b", "a", 1, 0),
			step("MatMul", "c", "b", "a"), step("MatMul", "y", "a", "c")), "in a within axis 0 of [1 12]"},
		{"a table of examples", fixed([][]byte{integersOf("rows", 1, 12)}, step("Reshape", "a", "x", "rows"), turned("b", "a", 1, 0),
			step("MatMul", "y", "a", "b")), "in b within axis 1 of [12 1]"},
		{"an Einsum of examples", fixed(nil, nodeOf("Einsum", []string{"x", "x"}, []string{"y"}, map[string]any{"equation": "bij,cij->b"})),
			"inputs have the batch in different places, in x within axis 0 of [1 2 6]"},
		{"an Einsum over the batch", fixed(nil, nodeOf("Einsum", []string{"x"}, []string{"y"}, map[string]any{"equation": "bij->ij"})), "value y has shape [2 6]"},
		{"a GatherND from the batch", fixed([][]byte{tensorWith("at", Int64, []int{2, 1}, message(7, []byte{0, 0}))}, step("GatherND", "y", "x", "at")),
			"axis 0 of [1 2 6] contains the batch"},
		{"a Softmax over the batch", fixed([][]byte{integersOf("all", -1)}, step("Reshape", "a", "x", "all"), step("Softmax", "y", "a")),
			"axis 0 of [12] contains the batch"},
		{"a LayerNormalization over the batch", fixed([][]byte{integersOf("all", -1), tensorOf("one", []int{1}, 1)},
			step("Reshape", "a", "x", "all"), step("LayerNormalization", "y", "a", "one")), "axis 0 of [12] contains the batch"},
		{"windows over the batch", fixed(nil, turned("a", "x", 1, 2, 0),
			nodeOf("MaxPool", []string{"a"}, []string{"y"}, map[string]any{"kernel_shape": []int{3}, "pads": []int{1, 1}})), "axis 2 of [2 6 1] contains the batch"},
		{"normalised channels with the batch", fixed(nil, turned("a", "x", 1, 0, 2),
			nodeOf("LRN", []string{"a"}, []string{"y"}, map[string]any{"size": 3})), "axis 1 of [2 1 6] contains the batch"},
		{"copies of the batch", fixed([][]byte{integersOf("times", 2, 1, 1), integersOf("rows", 1, 24)},
			step("Tile", "a", "x", "times"), step("Reshape", "y", "a", "rows")),
			"axis 0 of [1 2 6] contains the batch"},
		{"a batch after another", fixed([][]byte{integersOf("rows", 1, 24)}, nodeOf("Concat", []string{"x", "x"}, []string{"a"}, map[string]any{"axis": 0}),
			step("Reshape", "y", "a", "rows")), "axis 0 of [1 2 6] contains the batch"},
		{"sums of rows in different orders", fixed([][]byte{integersOf("rows", 2, 6), integersOf("back", 1, 2, 6)}, turned("a", "x", 1, 0, 2),
			step("Reshape", "b", "a", "rows"), step("Reshape", "c", "x", "rows"), step("Add", "d", "b", "c"), step("Reshape", "y", "d", "back")),
			"in c within axis 0 of [2 6]"},
		{"a mean without its axis", fixed([][]byte{integersOf("axis", 1), integersOf("thirds", 1, 3, 4)}, step("Reshape", "a", "x", "thirds"),
			nodeOf("ReduceMean", []string{"a", "axis"}, []string{"b"}, map[string]any{"keepdims": 0}), step("Sub", "y", "a", "b")),
			"in b within axis 0 of [1 4]"},
		{"an output of another shape", fixed(nil, turned("y", "x", 1, 0, 2)), "value y has shape [2 1 6] for a batch of 1 and [2 3 6] for a batch of 3"},
	} {
		if err := applyTo(t, row.model, 3, 2, 6).Err(); err == nil || !strings.Contains(err.Error(), row.want) || !strings.HasSuffix(err.Error(), exportDynamic) {
			t.Errorf("%s: error %v, want %q", row.name, err, row.want)
		}
	}
}

// applyTo returns a builder in which a model is applied to images of a shape.
func applyTo(t *testing.T, model []byte, shape ...int) *graph.Builder {
	t.Helper()
	m, err := Read(model, nil)
	if err != nil {
		t.Fatal(err)
	}
	n, err := m.Network(Options{})
	if err != nil {
		t.Fatal(err)
	}
	b := graph.New(tensor.Float32)
	n.Apply(b, b.Data("images", tensor.Float32, shape...))
	return b
}
