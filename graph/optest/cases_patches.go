package optest

import "github.com/pollen-ml/pollen/graph/op"

// naivePatches computes a convolution whose filters each pick one element of the kernel.
func (v convolution) naivePatches(in [][]float64) []float64 {
	picks := v
	picks.filters = v.terms()
	w := make([]float64, v.terms()*v.terms())
	for i := range v.terms() {
		w[i*v.terms()+i] = 1
	}
	return picks.naive([][]float64{in[0], w})
}

func patchCases() []Case {
	var cases []Case
	for _, v := range []convolution{
		convolve(1, 1, 1, 1, 1, 1, 1, op.Square(1), op.Square(0), op.Square(1)),
		convolve(3, 2, 7, 5, 1, 3, 3, op.Square(1), op.Square(1), op.Square(1)),
		convolve(2, 3, 9, 11, 1, 2, 3, [2]int{2, 1}, [2]int{0, 2}, [2]int{1, 2}),
		convolve(1, 31, 6, 33, 1, 5, 1, [2]int{1, 3}, [2]int{4, 0}, op.Square(1)),
	} {
		cases = append(cases, Case{
			Name:   "patches " + v.String(),
			Op:     op.Patches{Conv: v.conv, Height: v.filterHeight, Width: v.filterWide},
			Inputs: v.inputs()[:1], Naive: v.naivePatches, Terms: 1, NoGradient: true,
		})
	}
	return cases
}
