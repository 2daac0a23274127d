package op

import (
	"testing"

	"github.com/pollen-ml/pollen/tensor"
)

// All matrices together are limited, too: GPUs count their elements in 32 bits.
func TestBatchMatMulShapes(t *testing.T) {
	refuse(t, BatchMatMul{}, tensor.Shape{2, 3, 4}, tensor.Shape{3, 4, 5})
	refuse(t, BatchMatMul{}, tensor.Shape{2, 3, 4}, tensor.Shape{2, 5, 4})
	refuse(t, BatchMatMul{}, tensor.Shape{1 << 20, 1 << 10, 1}, tensor.Shape{1 << 20, 1, 1 << 10})
	refuse(t, BatchMatMul{TransposeB: true}, tensor.Shape{1 << 31, 1, 1}, tensor.Shape{1 << 31, 1, 1})
}
