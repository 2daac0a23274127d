package array

import (
	"testing"

	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/tensor"
)

func TestOpsRefuse(t *testing.T) {
	scalar, vector, matrix := tensor.Shape{}, tensor.Shape{3}, tensor.Shape{3, 4}
	for _, c := range []struct {
		op     graph.Op
		shapes []tensor.Shape
	}{
		{Difference{Axis: 2}, []tensor.Shape{matrix}},
		{Difference{Axis: -1}, []tensor.Shape{matrix}},
		{Difference{}, []tensor.Shape{matrix, matrix}},
		{CumulativeSum{Axis: 2}, []tensor.Shape{matrix}},
		{CumulativeSum{Axis: -1}, []tensor.Shape{matrix}},
		{CumulativeSum{}, []tensor.Shape{scalar}},
		{Repeat{Times: 1<<62 + 1}, []tensor.Shape{{4}}}, // times 4, it is 4 in 64 bits
		{Element{Index: 3}, []tensor.Shape{vector}},
		{Element{Index: -1}, []tensor.Shape{vector}},
		{Element{}, []tensor.Shape{vector, vector}},
	} {
		if shape, err := c.op.Shape(c.shapes); err == nil {
			t.Errorf("%s%+v of %v has shape %v, want an error", c.op.Name(), c.op, c.shapes, shape)
		}
	}
}
