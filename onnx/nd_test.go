package onnx

import (
	"strings"
	"testing"
)

func TestRejectND(t *testing.T) {
	at := func(shape []int, indices ...byte) []byte { return tensorWith("at", Int64, shape, message(7, indices)) }
	to := tensorOf("to", []int{2, 2}, 9, 8, 7, 6)
	for _, row := range []struct {
		name  string
		model []byte // with x [2 3]
		want  string
	}{
		{"holes", single("ScatterND", nil, []int{-1, 3}, at([]int{2, 2, 2}, 0, 0, 0, 2, 1, 0, 1, 2), to), "select a slice of each axis"},
		{"another order", single("ScatterND", nil, []int{-1, 3}, at([]int{2, 2, 2}, 0, 1, 0, 0, 1, 1, 1, 0), to), "select a slice of each axis"},
		{"beyond the edge", single("ScatterND", nil, []int{-1, 3}, at([]int{2, 2, 2}, 0, 2, 0, 3, 1, 2, 1, 3), to), "select a slice of each axis"},
		{"updates of another shape", single("ScatterND", nil, []int{-1, 3}, at([]int{1, 2, 2}, 0, 0, 0, 1), to), "updates must have shape [1 2], got [2 2]"},
		{"a sum", single("ScatterND", map[string]any{"reduction": "add"}, []int{-1, 3}, at([]int{2, 2, 2}, 0, 0, 0, 1, 1, 0, 1, 1), to),
			`reduction must be none, got "add"`},
		{"an index of a row that is not there", single("GatherND", nil, []int{-1, 3}, at([]int{1, 1}, 2)), "indices on axis 0 of shape [2 3] must be below 2, got 2"},
		{"too many axes", single("GatherND", nil, []int{-1, 3}, at([]int{1, 3}, 0, 0, 0)), "do not select from shape [2 3]"},
		{"other batches", single("GatherND", map[string]any{"batch_dims": 1}, []int{-1, 3}, at([]int{3, 1}, 0, 0, 0)), "do not select from shape [2 3]"},
	} {
		if err := applyTo(t, row.model, 2, 3).Err(); err == nil || !strings.Contains(err.Error(), row.want) {
			t.Errorf("%s: error %v, want %q", row.name, err, row.want)
		}
	}
}
