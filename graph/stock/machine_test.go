package stock

import (
	"testing"

	"gorgonia.org/gorgonia"
	dense "gorgonia.org/tensor"

	"github.com/pollen-ml/pollen/cuda"
	"github.com/pollen-ml/pollen/cuda/cudatest"
)

// convnet is a small CNN of stock ops.
func convnet(t testing.TB, dtype dense.Dtype) (loss *gorgonia.Node, parameters gorgonia.Nodes) {
	g := gorgonia.NewGraph()
	must := gorgonia.Must
	input := func(name string, shape ...int) *gorgonia.Node {
		return gorgonia.NewTensor(g, dtype, len(shape), gorgonia.WithShape(shape...), gorgonia.WithName(name), gorgonia.WithInit(gorgonia.Gaussian(0, 0.5)))
	}
	x, y := input("x", 4, 2, 8, 8), input("y", 4, 3)
	w1, b1 := input("w1", 5, 2, 3, 3), input("b1", 1, 5, 1, 1)
	w2, b2 := input("w2", 5*4*4, 3), input("b2", 1, 3)
	h := must(gorgonia.Conv2d(x, w1, dense.Shape{3, 3}, []int{1, 1}, []int{1, 1}, []int{1, 1}))
	h = must(gorgonia.BroadcastAdd(h, b1, nil, []byte{0, 2, 3}))
	h = must(gorgonia.MaxPool2D(must(gorgonia.Rectify(h)), dense.Shape{2, 2}, []int{0, 0}, []int{2, 2}))
	h = must(gorgonia.Reshape(h, dense.Shape{4, 5 * 4 * 4}))
	h = must(gorgonia.BroadcastAdd(must(gorgonia.Mul(h, w2)), b2, nil, []byte{0}))
	logs := must(gorgonia.LogSoftMax(h))
	loss = must(gorgonia.Neg(must(gorgonia.Mean(must(gorgonia.HadamardProd(logs, y))))))
	parameters = gorgonia.Nodes{w1, b1, w2, b2}
	if _, err := gorgonia.Grad(loss, parameters...); err != nil {
		t.Fatal(err)
	}
	return loss, parameters
}

func TestConvnet(t *testing.T) {
	loss, parameters := convnet(t, dense.Float64)
	want := onNaive(t, loss, parameters)
	wantStep(t, "tape", onTape(t, loss, parameters), want, 1e-12, 1e-10)
	wantStep(t, "host", onMachine(t, Options{}, loss, parameters), want, 1e-12, 1e-10)
	wantStep(t, "gpu", onMachine(t, Options{Device: cudatest.GPU(t, cuda.Options{})}, loss, parameters), want, 1e-12, 1e-10)
}
