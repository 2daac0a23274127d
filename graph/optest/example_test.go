package optest_test

import (
	"fmt"

	"github.com/pollen-ml/pollen/graph/optest"
	"github.com/pollen-ml/pollen/tensor"
)

func ExampleClose() {
	want := []float64{1, 2, 3}
	tol := optest.SumTol(tensor.Float32, 100, want)
	fmt.Println(optest.Close([]float64{1, 2.000001, 3}, want, tol))
	fmt.Println(optest.Close([]float64{1, 2.25, 3}, want, optest.Tol{Rel: 0.1}))
	// Output:
	// <nil>
	// optest: close: 1 of 3 elements are off; the worst is element 1: got 2.25, want 2 (1.049e+06 ulp, 1.25 times the tolerance of 0.2); bias 0.042
}
