package stock

import (
	"math/rand/v2"
	"reflect"
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

// steps trains the convnet with a solver, as a program of Gorgonia's does, on the machine that open
// makes, and returns the losses and the parameters.
func steps(t *testing.T, dtype dense.Dtype, solver gorgonia.Solver, open func(g *gorgonia.ExprGraph, parameters gorgonia.Nodes) gorgonia.VM) (all [][]float64) {
	t.Helper()
	loss, parameters := convnet(t, dtype)
	g := loss.Graph()
	var cost gorgonia.Value
	gorgonia.Read(loss, &cost)
	numbers := rand.New(rand.NewPCG(1, 2))
	for _, n := range append(gorgonia.Nodes{g.ByName("x")[0], g.ByName("y")[0]}, parameters...) {
		values := make([]float64, n.Shape().TotalSize())
		for i := range values {
			values[i] = 0.5 * numbers.NormFloat64()
		}
		if err := gorgonia.Let(n, valueOf(n, rawValues{f64: values})); err != nil {
			t.Fatal(err)
		}
	}
	vm := open(g, parameters)
	defer vm.Close()
	for range 4 {
		if err := vm.RunAll(); err != nil {
			t.Fatal(err)
		}
		if err := solver.Step(gorgonia.NodesToValueGrads(parameters)); err != nil {
			t.Fatal(err)
		}
		all = append(all, floatsOf(cost), floatsOf(loss.Value()))
		vm.Reset()
	}
	for _, p := range parameters {
		all = append(all, floatsOf(p.Value()))
	}
	return all
}

// Gorgonia's solvers make the same steps on a Machine as on a TapeMachine.
func TestSolvers(t *testing.T) {
	for name, solver := range map[string]func() gorgonia.Solver{
		"vanilla": func() gorgonia.Solver {
			return gorgonia.NewVanillaSolver(gorgonia.WithLearnRate(0.1), gorgonia.WithL2Reg(0.01))
		},
		"momentum": func() gorgonia.Solver { return gorgonia.NewMomentum(gorgonia.WithLearnRate(0.1)) },
		"adam": func() gorgonia.Solver {
			return gorgonia.NewAdamSolver(gorgonia.WithLearnRate(0.01), gorgonia.WithBatchSize(4))
		},
		"rmsprop": func() gorgonia.Solver { return gorgonia.NewRMSPropSolver(gorgonia.WithLearnRate(0.01)) },
	} {
		want := steps(t, dense.Float64, solver(), func(g *gorgonia.ExprGraph, parameters gorgonia.Nodes) gorgonia.VM {
			return gorgonia.NewTapeMachine(g, gorgonia.BindDualValues(parameters...))
		})
		got := steps(t, dense.Float64, solver(), func(g *gorgonia.ExprGraph, parameters gorgonia.Nodes) gorgonia.VM {
			return NewMachine(g, Options{}, gorgonia.BindDualValues(parameters...))
		})
		for i := range want {
			if err := nearly(got[i], want[i], 1e-10); err != nil {
				t.Errorf("%s: result %d: %v", name, i, err)
			}
		}
	}
}

// The values that a program may read are stored: Read nodes, named nodes, and nodes without a user.
// Set copies them.
func TestValues(t *testing.T) {
	b := newBench()
	x, y := b.weights("x", 3, 4), b.weights("y", 3, 4)
	inner := must(gorgonia.Tanh(x))
	named := must(gorgonia.Square(inner))
	gorgonia.WithName("named")(named)
	sum := must(gorgonia.Add(named, y))
	positive := must(gorgonia.Gt(sum, gorgonia.NewConstant(0.5), false))
	scalar := must(gorgonia.Mean(sum))
	var read, input gorgonia.Value
	gorgonia.Read(sum, &read)
	gorgonia.Read(x, &input)
	vm := NewMachine(b.g, Options{})
	defer vm.Close()
	want, err := naive(b.g)
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := vm.RunAll(); err != nil {
			t.Fatal(err)
		}
		for _, n := range []*gorgonia.Node{named, sum, scalar} {
			if err := nearly(numbers(t, n.Value()), numbers(t, want[n]), 1e-12); err != nil {
				t.Errorf("%v: %v", n, err)
			}
		}
	}
	if err := nearly(numbers(t, read), numbers(t, want[sum]), 1e-12); err != nil {
		t.Errorf("read: %v", err)
	}
	if err := nearly(numbers(t, input), numbers(t, x.Value()), 0); err != nil {
		t.Errorf("read of an input: %v", err)
	}
	if inner.Value() != nil {
		t.Errorf("a node that nobody looks at has the value %v", inner.Value())
	}
	for i, v := range positive.Value().Data().([]bool) {
		if v != (numbers(t, read)[i] > 0.5) {
			t.Errorf("element %d of the comparison is %v", i, v)
		}
	}
	if err := vm.Set(y, named); err != nil {
		t.Fatal(err)
	}
	if err := vm.RunAll(); err != nil {
		t.Fatal(err)
	}
	for i, v := range numbers(t, read) {
		if half := numbers(t, named.Value())[i]; v-2*half > 1e-12 || 2*half-v > 1e-12 {
			t.Errorf("element %d is %v after Set, want %v", i, v, 2*half)
		}
	}
}

// The types that are read by reflection have the fields of Gorgonia v0.9.18; a type with other
// fields is an error.
func TestLayouts(t *testing.T) {
	seen := map[string]bool{}
	look := func(values ...any) {
		for _, v := range values {
			if _, err := attributesOf(v); err != nil {
				t.Error(err)
			}
			seen[reflect.TypeOf(v).String()] = true
		}
	}
	b := newBench()
	x, m := b.weights("x", 2, 3, 4, 4), b.weights("m", 3, 4)
	square := []int{2, 2}
	scale, bias := b.weights("scale", 1, 3, 1, 1), b.weights("bias", 1, 3, 1, 1)
	must(gorgonia.Conv2d(x, b.weights("w", 5, 3, 2, 2), dense.Shape{2, 2}, []int{1, 1}, []int{1, 1}, []int{1, 1}))
	must(gorgonia.MaxPool2D(x, dense.Shape{2, 2}, []int{0, 0}, square))
	must(gorgonia.AveragePool2D(x, dense.Shape{2, 2}, []int{0, 0}, square))
	must(gorgonia.GroupNorm(x, scale, bias, 3, 3, 1e-5))
	if _, _, _, _, err := gorgonia.BatchNorm(x, x, x, 0.1, 1e-5); err != nil {
		t.Fatal(err)
	}
	for _, f := range []func(*gorgonia.Node) (*gorgonia.Node, error){
		gorgonia.Exp, gorgonia.GlobalAveragePool2D,
		func(n *gorgonia.Node) (*gorgonia.Node, error) { return gorgonia.Upsample2D(n, 2) },
		func(n *gorgonia.Node) (*gorgonia.Node, error) { return gorgonia.Dropout(n, 0.5) },
		func(n *gorgonia.Node) (*gorgonia.Node, error) { return gorgonia.Concat(0, n, n) },
		func(n *gorgonia.Node) (*gorgonia.Node, error) { return gorgonia.At(n, 1, 1, 1, 1) },
		func(n *gorgonia.Node) (*gorgonia.Node, error) { return gorgonia.Max(n, 0) },
		func(n *gorgonia.Node) (*gorgonia.Node, error) { return gorgonia.Slice(n, gorgonia.S(1)) },
		func(n *gorgonia.Node) (*gorgonia.Node, error) { return gorgonia.MinBetween(n, n) },
		func(n *gorgonia.Node) (*gorgonia.Node, error) { return gorgonia.MaxBetween(n, n) },
	} {
		must(f(x))
	}
	must(gorgonia.SoftMax(m))
	must(gorgonia.Add(m, gorgonia.NewConstant(dense.New(dense.WithShape(3, 4), dense.Of(dense.Float64)))))
	mean := must(gorgonia.Mean(must(gorgonia.Add(m, gorgonia.UniformRandomNode(b.g, dense.Float64, 0, 1, 3, 4)))))
	must(gorgonia.Add(mean, gorgonia.NewConstant(3.0)))
	gorgonia.Set(m, m)
	var value gorgonia.Value
	gorgonia.Read(m, &value)
	look(gorgonia.NewTapeMachine(newBench().weights("x", 1).Graph()))
	for _, n := range b.g.AllNodes() {
		look(n)
		if n.Op() == nil {
			continue
		}
		look(n.Op())
		if a, _ := attributesOf(n.Op()); a.is("elemBinOp") {
			if _, err := a.binary(); err != nil {
				t.Error(err)
			}
			seen[a.fields.FieldByName("ʘBinaryOperator").Elem().Type().String()] = true
		}
	}
	for name := range layouts {
		if !seen[name] {
			t.Errorf("%s is in the table and was not looked at", name)
		}
	}
	const name = "gorgonia.im2colOp"
	before := layouts[name]
	defer func() { layouts[name] = before }()
	layouts[name] = before + ", groups int"
	wantError(t, NewMachine(b.g, Options{}).Err(), name, "groups int", "v0.9.18")
}
