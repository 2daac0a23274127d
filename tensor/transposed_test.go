package tensor_test

import (
	"slices"
	"testing"

	"github.com/pollen-ml/pollen/tensor"
)

func TestTransposed(t *testing.T) {
	if got := tensor.Transposed([]int{1, 2, 3, 4, 5, 6}, 2, 3); !slices.Equal(got, []int{1, 4, 2, 5, 3, 6}) {
		t.Errorf("got %v", got)
	}
}
