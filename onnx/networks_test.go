package onnx

import (
	"bytes"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/graph/op"
	"github.com/pollen-ml/pollen/tensor"
)

// networksVariable names a directory of whole networks with outputs and gradients, as
// generate/networks.py writes them: a directory per network, with model.onnx, input_0.pb,
// output_0.pb and gradient_0.pb, gradient_1.pb and so on.
const networksVariable = "POLLEN_ONNX_NETWORKS"

// gradientOf begins the names of outputs that are gradients of weights.
const gradientOf = "gradient of "

// Bounds of the largest difference to the other program, relative to the largest element.
const (
	outputBound   = 1e-4
	gradientBound = 1e-3
)

// TestNetworks compares the outputs of networks, and the gradients of all weights, with PyTorch and
// ONNX Runtime.
func TestNetworks(t *testing.T) {
	dir := os.Getenv(networksVariable)
	if dir == "" {
		t.Skipf("%s is not set: python3 onnx/generate/networks.py DIR writes the networks", networksVariable)
	}
	models, err := filepath.Glob(filepath.Join(dir, "*", "model.onnx"))
	if err != nil || len(models) == 0 {
		t.Fatalf("%s has no networks: %v", dir, err)
	}
	for _, path := range models {
		t.Run(filepath.Base(filepath.Dir(path)), func(t *testing.T) { compareNetwork(t, path) })
	}
}

// stored reads a tensor next to a model, nil if there is none of the name.
func stored(t *testing.T, path, name string) *storedTensor {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(filepath.Dir(path), name))
	if os.IsNotExist(err) {
		return nil
	}
	if err != nil {
		t.Fatal(err)
	}
	w, err := readTensor(content)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

func compareNetwork(t *testing.T, path string) {
	m, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	trained := stored(t, path, "gradient_0.pb") != nil
	n, err := m.Network(Options{Frozen: func(string) bool { return !trained }})
	if err != nil {
		t.Fatal(err)
	}
	x, want := stored(t, path, "input_0.pb"), map[string][]float64{"output": stored(t, path, "output_0.pb").array().values}
	b := graph.New(tensor.Float32)
	y := n.Apply(b, b.Data("images", tensor.Float32, x.Shape...))
	b.Output("output", y)
	if trained {
		loss := b.Apply(op.Mean{}, b.Apply(op.CrossEntropy{}, y, b.Data("labels", tensor.Int32, x.Shape[0])))
		parameters := b.Parameters()
		for i, g := range b.Gradients(loss, parameters...) {
			b.Output(gradientOf+parameters[i].Name(), g)
		}
		for i := 0; ; i++ {
			w := stored(t, path, fmt.Sprintf("gradient_%d.pb", i))
			if w == nil {
				break
			}
			want[gradientOf+w.Name] = w.array().values
		}
	}
	if !trained {
		compareWritten(t, n, x, want["output"])
	}
	err = b.OnHost(graph.LoadOptions{}, func(s *graph.Session) error {
		if err := graph.Write(s, "images", 0, 0, float32s(x.array().values)); err != nil {
			return err
		}
		if trained {
			labels := make([]int32, x.Shape[0])
			for i := range labels {
				labels[i] = int32(i)
			}
			if err := graph.Write(s, "labels", 0, 0, labels); err != nil {
				return err
			}
		}
		if err := s.Run(1); err != nil {
			return err
		}
		worst, worstName := 0.0, ""
		for name, values := range want {
			got := make([]float32, len(values))
			if err := graph.Read(s, name, 0, 0, got); err != nil {
				return errors.WithMessage(err, name)
			}
			off, bound := difference(got, values), gradientBound
			if name == "output" {
				bound = outputBound
				t.Logf("the output differs by %.2g", off)
			} else if off > worst {
				worst, worstName = off, name
			}
			if !(off <= bound) {
				t.Errorf("%s differs by %.2g, want at most %g", name, off, bound)
			}
		}
		if trained {
			t.Logf("gradients of %d weights differ by at most %.2g: %s", len(want)-1, worst, worstName)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// compareWritten writes the network to a file for any number of images, and compares the results.
// Networks in which the batch moves to another axis cannot be written.
func compareWritten(t *testing.T, n *Network, x *storedTensor, want []float64) {
	b, one := graph.New(tensor.Float32), append([]int{1}, x.Shape[1:]...)
	images := b.Data("images", tensor.Float32, one...)
	y := n.Apply(b, images)
	if b.Err() != nil {
		t.Fatal(b.Err())
	}
	var w Writer
	e, err := w.Emit(b, images, w.Input("x", Float32, append([]int{-1}, x.Shape[1:]...)...), [][][]float32{{}}, "")
	if err != nil {
		t.Logf("not written: %v", err)
		return
	}
	name, _, err := e.Value(y)
	if err != nil {
		t.Fatal(err)
	}
	w.Output("y", name, Float32, append([]int{-1}, graph.ShapeOf(y)[1:]...)...)
	var content bytes.Buffer
	if _, err := w.WriteTo(&content); err != nil {
		t.Fatal(err)
	}
	m, err := Read(content.Bytes(), nil)
	if err != nil {
		t.Fatal(err)
	}
	written, err := m.Network(Options{Output: name, Frozen: func(string) bool { return true }})
	if err != nil {
		t.Fatal(err)
	}
	got, err := written.evaluate(name, x)
	if err != nil {
		t.Fatalf("written: %v", err)
	}
	if off := difference(float32s(got.values), want); !(off <= outputBound) {
		t.Errorf("written and read again, the output differs by %.2g", off)
	}
}

func float32s(values []float64) []float32 {
	of := make([]float32, len(values))
	for i, v := range values {
		of[i] = float32(v)
	}
	return of
}

// difference returns the largest difference relative to the largest element.
func difference(got []float32, want []float64) float64 {
	off, largest := 0.0, 0.0
	for i, w := range want {
		off, largest = max(off, math.Abs(float64(got[i])-w)), max(largest, math.Abs(w))
	}
	return off / largest
}
