package stock

import (
	"math/rand/v2"
	"testing"

	"gorgonia.org/gorgonia"
	dense "gorgonia.org/tensor"

	"github.com/pollen-ml/pollen/cuda"
	"github.com/pollen-ml/pollen/cuda/cudatest"
)

// bench makes inputs for the graphs of Gorgonia's own example programs, with smaller sizes.
type bench struct {
	g       *gorgonia.ExprGraph
	numbers *rand.Rand
}

func newBench() *bench { return &bench{gorgonia.NewGraph(), rand.New(rand.NewPCG(7, 7))} }

func (b *bench) weights(name string, shape ...int) *gorgonia.Node {
	values := make([]float64, dense.Shape(shape).TotalSize())
	for i := range values {
		values[i] = 0.3 * b.numbers.NormFloat64()
	}
	return b.holding(name, values, shape...)
}

func (b *bench) holding(name string, values []float64, shape ...int) *gorgonia.Node {
	return gorgonia.NewTensor(b.g, dense.Float64, len(shape), gorgonia.WithShape(shape...), gorgonia.WithName(name),
		gorgonia.WithValue(dense.New(dense.WithShape(shape...), dense.WithBacking(values))))
}

// labels are one-hot rows.
func (b *bench) labels(rows, classes int) *gorgonia.Node {
	values := make([]float64, rows*classes)
	for row := range rows {
		values[row*classes+b.numbers.IntN(classes)] = 1
	}
	return b.holding("y", values, rows, classes)
}

// block is convolution, ReLU and pooling, as in convnet and resnet.
func (b *bench) block(x, w *gorgonia.Node, size int) (convolved, pooled *gorgonia.Node) {
	convolved = must(gorgonia.Conv2d(x, w, dense.Shape{size, size}, []int{1, 1}, []int{1, 1}, []int{1, 1}))
	pooled = must(gorgonia.MaxPool2D(must(gorgonia.Rectify(convolved)), dense.Shape{2, 2}, []int{0, 0}, []int{2, 2}))
	return convolved, pooled
}

func flat(x *gorgonia.Node) *gorgonia.Node {
	shape := x.Shape()
	return must(gorgonia.Reshape(x, dense.Shape{shape[0], shape.TotalSize() / shape[0]}))
}

// crossEntropy is the loss that the authors of convnet call the correct one.
func crossEntropy(probabilities, y *gorgonia.Node) *gorgonia.Node {
	losses := must(gorgonia.HadamardProd(must(gorgonia.Neg(must(gorgonia.Log(probabilities)))), y))
	return must(gorgonia.Mean(losses))
}

// exampleGraphs are the graphs of Gorgonia's examples, without dropout: its random numbers differ
// between machines, and Gorgonia's gradient of it is wrong.
var exampleGraphs = map[string]func(b *bench) (loss *gorgonia.Node, parameters gorgonia.Nodes){
	"convnet": func(b *bench) (*gorgonia.Node, gorgonia.Nodes) {
		x, y := b.weights("x", 3, 1, 20, 20), b.labels(3, 10)
		w0, w1, w2 := b.weights("w0", 4, 1, 3, 3), b.weights("w1", 6, 4, 3, 3), b.weights("w2", 8, 6, 3, 3)
		w3, w4 := b.weights("w3", 8*2*2, 9), b.weights("w4", 9, 10)
		h := x
		for _, w := range []*gorgonia.Node{w0, w1, w2} {
			_, h = b.block(h, w, 3)
		}
		h = must(gorgonia.Rectify(must(gorgonia.Mul(flat(h), w3))))
		return crossEntropy(must(gorgonia.SoftMax(must(gorgonia.Mul(h, w4)))), y), gorgonia.Nodes{w0, w1, w2, w3, w4}
	},
	"286": func(b *bench) (*gorgonia.Node, gorgonia.Nodes) {
		x, y := b.weights("x", 5, 20), b.weights("y", 5, 10)
		w0, w1 := b.weights("w0", 20, 12), b.weights("w1", 12, 10)
		out := must(gorgonia.SoftMax(must(gorgonia.Mul(must(gorgonia.Rectify(must(gorgonia.Mul(x, w0)))), w1))))
		return must(gorgonia.Neg(must(gorgonia.Mean(must(gorgonia.HadamardProd(out, y)))))), gorgonia.Nodes{w0, w1}
	},
	"iris": func(b *bench) (*gorgonia.Node, gorgonia.Nodes) {
		x, y, theta := b.weights("x", 30, 5), b.weights("y", 30), b.weights("theta", 5)
		return must(gorgonia.Mean(must(gorgonia.Square(must(gorgonia.Sub(must(gorgonia.Mul(x, theta)), y)))))), gorgonia.Nodes{theta}
	},
	"logistic regression": func(b *bench) (*gorgonia.Node, gorgonia.Nodes) {
		labels := make([]float64, 40)
		for i := range labels {
			labels[i] = float64(i % 2)
		}
		x, y, w := b.weights("x", 40, 10), b.holding("y", labels, 40), b.weights("w", 10)
		bias := gorgonia.NewScalar(b.g, dense.Float64, gorgonia.WithName("bias"), gorgonia.WithValue(0.3))
		one := gorgonia.NewConstant(1.0)
		prob := must(gorgonia.Sigmoid(must(gorgonia.Add(must(gorgonia.Mul(x, w)), bias))))
		gorgonia.WithName("prob")(prob)
		pred := must(gorgonia.Gt(prob, gorgonia.NewConstant(0.5), false))
		gorgonia.WithName("pred")(pred)
		first := must(gorgonia.HadamardProd(must(gorgonia.Neg(y)), must(gorgonia.Log(prob))))
		second := must(gorgonia.HadamardProd(must(gorgonia.Sub(one, y)), must(gorgonia.Log(must(gorgonia.Sub(one, prob))))))
		loss := must(gorgonia.Mean(must(gorgonia.Sub(first, second))))
		penalty := must(gorgonia.Mul(gorgonia.NewConstant(0.01, gorgonia.WithName("l2reg")), must(gorgonia.Sum(must(gorgonia.Square(w))))))
		return must(gorgonia.Add(loss, penalty)), gorgonia.Nodes{w, bias}
	},
	"resnet": func(b *bench) (*gorgonia.Node, gorgonia.Nodes) {
		x, y := b.weights("x", 3, 1, 8, 8), b.labels(3, 10)
		w0, w1, w1r := b.weights("w0", 2, 1, 3, 3), b.weights("w1", 3, 2, 3, 3), b.weights("w1r", 3*2*2, 3*4*4)
		w2, w2r, w3, w4 := b.weights("w2", 4, 3, 3, 3), b.weights("w2r", 4*2*2, 4*4*4), b.weights("w3", 4*4*4, 9), b.weights("w4", 9, 10)
		_, h := b.block(x, w0, 3)
		for _, w := range [][2]*gorgonia.Node{{w1, w1r}, {w2, w2r}} {
			convolved, pooled := b.block(h, w[0], 3)
			back := must(gorgonia.Reshape(must(gorgonia.Mul(flat(pooled), w[1])), convolved.Shape()))
			h = must(gorgonia.Add(convolved, back))
		}
		h = must(gorgonia.Rectify(must(gorgonia.Mul(flat(h), w3))))
		return crossEntropy(must(gorgonia.SoftMax(must(gorgonia.Mul(h, w4)))), y), gorgonia.Nodes{w0, w1, w1r, w2, w2r, w3, w4}
	},
}

// The graphs of Gorgonia's examples give the same results on all machines.
func TestExampleGraphs(t *testing.T) {
	gpu := cudatest.GPU(t, cuda.Options{})
	for name, build := range exampleGraphs {
		loss, parameters := build(newBench())
		if _, err := gorgonia.Grad(loss, parameters...); err != nil {
			t.Fatal(err)
		}
		want := onNaive(t, loss, parameters)
		wantStep(t, name+" on tape", onTape(t, loss, parameters), want, 1e-12, 1e-10) // first: it adds to gradients
		wantStep(t, name+" on the host", onMachine(t, Options{}, loss, parameters), want, 1e-12, 1e-10)
		wantStep(t, name+" on a GPU", onMachine(t, Options{Device: gpu}, loss, parameters), want, 1e-12, 1e-10)
		plain, inputs := build(newBench())
		wantStep(t, name+" adopted", onBuilder(t, plain, inputs), want, 1e-12, 1e-10)
	}
}

// Dropout drops the same elements of the gradient as of the output, and divides the others by the
// fraction that it keeps; in evaluation nothing is dropped. Gorgonia's gradient divides by the
// fraction that it drops.
func TestDropout(t *testing.T) {
	for _, evaluating := range []bool{false, true} {
		b := newBench()
		x := b.weights("x", 50, 40)
		dropped := must(gorgonia.Dropout(x, 0.25))
		gorgonia.WithName("dropped")(dropped)
		if _, err := gorgonia.Grad(must(gorgonia.Sum(dropped)), x); err != nil {
			t.Fatal(err)
		}
		var options []gorgonia.VMOpt
		if evaluating {
			options = append(options, gorgonia.EvalMode())
		}
		vm := NewMachine(b.g, Options{Seed: 3}, options...)
		var before []float64
		for range 2 {
			if err := vm.RunAll(); err != nil {
				t.Fatal(err)
			}
			gradient, err := x.Grad()
			if err != nil {
				t.Fatal(err)
			}
			values, slopes, kept := numbers(t, x.Value()), numbers(t, gradient), 0
			for i, v := range numbers(t, dropped.Value()) {
				scale := 1 / 0.75
				if evaluating {
					scale = 1
				}
				if v == 0 {
					scale = 0
				} else {
					kept++
				}
				if slopes[i] != scale || v-scale*values[i] > 1e-15 || scale*values[i]-v > 1e-15 {
					t.Fatalf("element %d of %v is %v, its gradient %v", i, values[i], v, slopes[i])
				}
			}
			if want := 1500; evaluating && kept != 2000 || !evaluating && (kept < want-80 || kept > want+80) {
				t.Errorf("%d of 2000 are kept (evaluating: %v)", kept, evaluating)
			}
			if !evaluating && before != nil && nearly(slopes, before, 0) == nil {
				t.Error("two runs drop the same elements")
			}
			before = append([]float64(nil), slopes...)
		}
		if err := vm.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// Batch norm in evaluation uses its running mean and variance.
func TestBatchNormInEvaluation(t *testing.T) {
	b := newBench()
	x, scale, bias := b.weights("x", 2, 3, 4, 4), b.weights("scale", 2, 3, 4, 4), b.weights("bias", 2, 3, 4, 4)
	y, _, _, normal, err := gorgonia.BatchNorm(x, scale, bias, 0.1, 1e-5)
	if err != nil {
		t.Fatal(err)
	}
	gorgonia.WithName("normal")(y)
	loss := must(gorgonia.Mean(must(gorgonia.Square(y))))
	training := gorgonia.NewTapeMachine(b.g)
	for range 3 {
		if err := training.RunAll(); err != nil {
			t.Fatal(err)
		}
		training.Reset()
	}
	if err := normal.SetTraining(false); err != nil {
		t.Fatal(err)
	}
	want, err := naive(b.g)
	if err != nil {
		t.Fatal(err)
	}
	wantLoss := numbers(t, want[loss])
	for range 2 {
		vm := NewMachine(b.g, Options{}, gorgonia.EvalMode())
		if err := vm.RunAll(); err != nil {
			t.Fatal(err)
		}
		if err := nearly(numbers(t, y.Value()), numbers(t, want[y]), 1e-12); err != nil {
			t.Error(err)
		}
		if err := nearly(numbers(t, loss.Value()), wantLoss, 1e-12); err != nil {
			t.Error(err)
		}
		if err := vm.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// Gorgonia makes log softmax + log y of Log(softmax * y), and the probabilities themselves become
// their logarithms. A Machine computes the expression as written, and its error explains the cause
// if a label is 0.
func TestLogarithmOfSoftmaxAndLabels(t *testing.T) {
	for _, certain := range []bool{false, true} {
		b := newBench()
		labels := []float64{0.7, 0.2, 0.1, 0.3, 0.3, 0.4}
		if certain {
			labels = []float64{1, 0, 0, 0, 0, 1}
		}
		x, y := b.weights("x", 2, 3), b.holding("y", labels, 2, 3)
		p := must(gorgonia.SoftMax(x))
		var read gorgonia.Value
		gorgonia.Read(p, &read)
		loss := must(gorgonia.Neg(must(gorgonia.Mean(must(gorgonia.Log(must(gorgonia.HadamardProd(p, y))))))))
		if _, err := gorgonia.Grad(loss, x); err != nil {
			t.Fatal(err)
		}
		vm := NewMachine(b.g, Options{})
		err := vm.RunAll()
		if certain {
			wantError(t, err, "NaN or an infinity", "Log(softmax * labels)", "HadamardProd(labels, Log(softmax))")
		} else if err != nil {
			t.Error(err)
		} else if sum := numbers(t, read)[0] + numbers(t, read)[1] + numbers(t, read)[2]; sum < 1-1e-12 || sum > 1+1e-12 {
			t.Errorf("the probabilities add up to %v", sum)
		}
		if err := vm.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// A TapeMachine overwrites a register whose memory a Reshape shares (issue 576).
func TestReshapeSharesNothing(t *testing.T) {
	b := newBench()
	x, y, z := b.weights("x", 2, 2), b.weights("y", 2, 2), b.weights("z", 2, 2)
	sum := must(gorgonia.Add(x, y))
	flat := must(gorgonia.Reshape(sum, dense.Shape{4}))
	more := must(gorgonia.Add(sum, z))
	square := must(gorgonia.HadamardProd(flat, flat))
	want, err := naive(b.g)
	if err != nil {
		t.Fatal(err)
	}
	var theirs gorgonia.Value
	gorgonia.Read(square, &theirs)
	tape := gorgonia.NewTapeMachine(b.g)
	if err := tape.RunAll(); err != nil {
		t.Fatal(err)
	}
	if nearly(numbers(t, theirs), numbers(t, want[square]), 1e-12) == nil {
		t.Error("the TapeMachine is right now")
	}
	vm := NewMachine(b.g, Options{})
	defer vm.Close()
	if err := vm.RunAll(); err != nil {
		t.Fatal(err)
	}
	for _, n := range []*gorgonia.Node{square, more} {
		if err := nearly(numbers(t, n.Value()), numbers(t, want[n]), 1e-12); err != nil {
			t.Error(err)
		}
	}
}
