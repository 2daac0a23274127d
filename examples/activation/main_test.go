package main

import (
	"bytes"
	"math"
	"testing"

	"github.com/pollen-ml/pollen/cuda"
	"github.com/pollen-ml/pollen/cuda/cudatest"
	"github.com/pollen-ml/pollen/graph/optest"
	"github.com/pollen-ml/pollen/tensor"
)

// TestMish: values, gradients, bounds, threads and chains, on the host and on the emulated GPU by
// mish.ptx. That the driver finds the kernels is Add's doing.
func TestMish(t *testing.T) {
	naive := func(in [][]float64) []float64 {
		y := make([]float64, len(in[0]))
		for i, x := range in[0] {
			y[i] = x * math.Tanh(math.Log1p(math.Exp(x)))
		}
		return y
	}
	var cases []optest.Case
	for _, shape := range []tensor.Shape{{1}, {31}, {3, 5, 7, 11}, {9001}} {
		cases = append(cases, optest.Case{Name: shape.String(), Op: Mish{}, Inputs: []optest.Input{optest.Float(optest.Normal, shape...)}, Naive: naive, Terms: 4})
	}
	t.Run("host", func(t *testing.T) { optest.RunCases(t, tensor.NewHost(2), cases) })
	t.Run("GPU", func(t *testing.T) { optest.RunCases(t, cudatest.GPU(t, cuda.Options{}), cases) })
}

// TestRun: the network learns.
func TestRun(t *testing.T) {
	var out bytes.Buffer
	if err := run(t.Context(), &out, "cpu", 5, 1000); err != nil {
		t.Fatal(err)
	}
	t.Log(out.String())
}
