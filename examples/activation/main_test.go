package main

import (
	"bytes"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/pollen-ml/pollen/cuda"
	"github.com/pollen-ml/pollen/cuda/cudatest"
	"github.com/pollen-ml/pollen/datasets"
	"github.com/pollen-ml/pollen/graph/optest"
	"github.com/pollen-ml/pollen/tensor"
)

// TestMish tests values, gradients, bounds, threads and chains, on the host and with mish.ptx on
// the emulated GPU. The driver finds the kernels because mish.go adds them with kernels.Add.
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
	all, err := datasets.Open("mnist", datasets.Options{})
	if err != nil {
		t.Fatal(err)
	}
	digits := &datasets.Splits{}
	if digits.Train, err = all.Train.First(500); err == nil {
		digits.Test, err = all.Test.First(200)
	}
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := run(t.Context(), &out, "cpu", 10, digits); err != nil {
		t.Fatal(err)
	}
	if err := run(t.Context(), &out, "cpu", 0, digits); err == nil || !strings.Contains(err.Error(), "at least 1") {
		t.Errorf("no epochs: %v, want an error", err)
	}
	accuracy := 0.0
	if _, err := fmt.Sscanf(out.String(), "accuracy %g,", &accuracy); err != nil || !(accuracy > 0.5) {
		t.Errorf("after ten epochs of 500 digits: %s (%v), want an accuracy above 0.5", out.String(), err)
	}
}
