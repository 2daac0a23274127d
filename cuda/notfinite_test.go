package cuda_test

import (
	"math"
	"testing"

	"github.com/pollen-ml/pollen/cuda"
	"github.com/pollen-ml/pollen/cuda/cudatest"
	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/graph/op"
	"github.com/pollen-ml/pollen/tensor"
)

// TestProductsKeepNaN: in every precision, a number in an operand that is not finite, in any bit
// pattern that a GPU, Go or an x86 processor produces, makes its row or column of the product not
// finite, and no other element.
func TestProductsKeepNaN(t *testing.T) {
	const m, k, n = 37, 70, 41
	for _, precision := range []cuda.Precision{cuda.FP32, cuda.TF32, cuda.BF16} {
		t.Run(string(precision), func(t *testing.T) {
			left, right := make([]float32, m*k), make([]float32, k*n)
			for i := range left {
				left[i] = float32(i%13) - 6
			}
			for i := range right {
				right[i] = float32(i%7) - 2.5
			}
			rows, columns := map[int]bool{}, map[int]bool{}
			for i, bits := range []uint32{0x7fffffff, 0x7fc00000, 0xffc00000, 0x7f800001, 0x7f800000, 0xff800000, 0xffffefff} {
				row, column := 5*i+1, 6*i+2
				left[row*k+11*i], right[(11*i+3)*n+column] = math.Float32frombits(bits), math.Float32frombits(bits)
				rows[row], columns[column] = true, true
			}
			b := graph.New(tensor.Float32)
			b.Output("y", b.Apply(op.MatMul{}, b.Data("left", tensor.Float32, m, k), b.Data("right", tensor.Float32, k, n)))
			s := load(t, b, cudatest.GPU(t, cuda.Options{Precision: precision}), 1)
			y := make([]float32, m*n)
			for _, err := range []error{graph.Write(s, "left", 0, 0, left), graph.Write(s, "right", 0, 0, right), s.Run(1), graph.Read(s, "y", 0, 0, y)} {
				if err != nil {
					t.Fatal(err)
				}
			}
			for i, v := range y {
				want := rows[i/n] || columns[i%n]
				if finite := v-v == 0; finite == want {
					t.Fatalf("element (%d, %d) is %v", i/n, i%n, v)
				}
			}
		})
	}
}
