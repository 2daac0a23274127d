package stock

import (
	"hash"
	"log/slog"
	"testing"

	"github.com/chewxy/hm"
	"gorgonia.org/gorgonia"
	dense "gorgonia.org/tensor"

	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/tensor"
)

// doubling is a custom op.
type doubling struct{}

func (doubling) Arity() int { return 1 }
func (doubling) Type() hm.Type {
	a := hm.TypeVariable('a')
	return hm.NewFnType(a, a)
}
func (doubling) InferShape(in ...gorgonia.DimSizer) (dense.Shape, error) {
	return in[0].(dense.Shape).Clone(), nil
}
func (doubling) Do(in ...gorgonia.Value) (gorgonia.Value, error) { return in[0], nil }
func (doubling) ReturnsPtr() bool                                { return false }
func (doubling) CallsExtern() bool                               { return false }
func (doubling) OverwritesInput() int                            { return -1 }
func (doubling) WriteHash(h hash.Hash)                           { h.Write([]byte("doubling")) }
func (doubling) Hashcode() uint32                                { return 1 }
func (doubling) String() string                                  { return "doubling" }

// The error for each kind of graph that is refused names the node, the op, the reason and the
// remedy.
func TestRefused(t *testing.T) {
	must := gorgonia.Must
	images := func(g *gorgonia.ExprGraph) *gorgonia.Node {
		return gorgonia.NewTensor(g, dense.Float64, 4, gorgonia.WithShape(2, 3, 4, 4), gorgonia.WithName("x"), gorgonia.WithInit(gorgonia.Gaussian(0, 1)))
	}
	matrix := func(g *gorgonia.ExprGraph, name string) *gorgonia.Node {
		return gorgonia.NewMatrix(g, dense.Float64, gorgonia.WithShape(3, 4), gorgonia.WithName(name), gorgonia.WithInit(gorgonia.Gaussian(0, 1)))
	}
	for _, test := range []struct {
		name string
		make func(g *gorgonia.ExprGraph)
		want []string
	}{
		{"batch norm in training", func(g *gorgonia.ExprGraph) {
			x := images(g)
			scale := gorgonia.NewTensor(g, dense.Float64, 4, gorgonia.WithShape(2, 3, 4, 4), gorgonia.WithName("scale"), gorgonia.WithInit(gorgonia.Gaussian(0, 1)))
			bias := gorgonia.NewTensor(g, dense.Float64, 4, gorgonia.WithShape(2, 3, 4, 4), gorgonia.WithName("bias"), gorgonia.WithInit(gorgonia.Gaussian(0, 1)))
			_, _, _, _, err := gorgonia.BatchNorm(x, scale, bias, 0.1, 1e-5)
			if err != nil {
				t.Fatal(err)
			}
		}, []string{"node 3", "batchnorm", "depend on the others of its batch", "GroupNorm", "EvalMode()"}},
		{"average pooling", func(g *gorgonia.ExprGraph) {
			must(gorgonia.AveragePool2D(images(g), dense.Shape{2, 2}, []int{0, 0}, []int{2, 2}))
		}, []string{"node 1", "AvgPool", "image's width", "GlobalAveragePool2D"}},
		{"asymmetric padding", func(g *gorgonia.ExprGraph) {
			must(gorgonia.MaxPool2D(images(g), dense.Shape{2, 2}, []int{1, 0, 0, 1}, []int{2, 2}))
		}, []string{"node 1", "MaxPool", "asymmetric: 1 above and 0 below, 0 left and 1 right", "alike"}},
		{"a random node", func(g *gorgonia.ExprGraph) {
			must(gorgonia.Add(matrix(g, "x"), gorgonia.GaussianRandomNode(g, dense.Float64, 0, 1, 3, 4)))
		}, []string{"random", "Let an input", "Dropout"}},
		{"two losses", func(g *gorgonia.ExprGraph) {
			x := matrix(g, "x")
			first, second := must(gorgonia.Sum(must(gorgonia.Tanh(x)))), must(gorgonia.Mean(must(gorgonia.Square(x))))
			gorgonia.WithName("first")(first)
			for _, loss := range []*gorgonia.Node{first, second} {
				if _, err := gorgonia.Grad(loss, x); err != nil {
					t.Fatal(err)
				}
			}
		}, []string{`node "first"`, "two losses", "call Grad once"}},
		{"a part of the loss before", func(g *gorgonia.ExprGraph) {
			x := matrix(g, "x")
			part := must(gorgonia.Sum(must(gorgonia.Square(x))))
			gorgonia.WithName("part")(part)
			whole := must(gorgonia.Add(part, must(gorgonia.Mean(must(gorgonia.Tanh(x))))))
			gorgonia.WithName("whole")(whole)
			for _, loss := range []*gorgonia.Node{part, whole} {
				if _, err := gorgonia.Grad(loss, x); err != nil {
					t.Fatal(err)
				}
			}
		}, []string{`node "whole"`, `node "part"`, "two losses", "call Grad once"}},
		{"mixed types", func(g *gorgonia.ExprGraph) {
			must(gorgonia.Neg(matrix(g, "x")))
			must(gorgonia.Neg(gorgonia.NewMatrix(g, dense.Float32, gorgonia.WithShape(3, 4), gorgonia.WithName("narrow"), gorgonia.WithInit(gorgonia.Zeroes()))))
		}, []string{"float32 in a graph of float64", "all float64"}},
		{"integers", func(g *gorgonia.ExprGraph) {
			places := gorgonia.WithValue(dense.New(dense.WithBacking([]int{1, 2})))
			indices := gorgonia.NewVector(g, dense.Int, gorgonia.WithShape(2), gorgonia.WithName("indices"), places)
			must(gorgonia.ByIndices(matrix(g, "x"), indices, 0))
		}, []string{"ByIndices", "not an op that is known", "docs/gorgonia.md"}},
		{"a truth value that is read", func(g *gorgonia.ExprGraph) {
			var value gorgonia.Value
			gorgonia.Read(gorgonia.NewScalar(g, dense.Bool, gorgonia.WithName("x"), gorgonia.WithValue(true)), &value)
		}, []string{`node "x"`, "its numbers are bool", "all float64"}},
		{"a user's own op", func(g *gorgonia.ExprGraph) {
			must(gorgonia.ApplyOp(doubling{}, matrix(g, "x")))
		}, []string{"node 1", "op doubling", "stock.doubling", "docs/gorgonia.md"}},
		{"an op without a translation", func(g *gorgonia.ExprGraph) {
			must(gorgonia.Sparsemax(matrix(g, "x")))
		}, []string{"parsemax", "not an op that is known", "docs/gorgonia.md"}},
		{"a function without a translation", func(g *gorgonia.ExprGraph) { must(gorgonia.Sin(matrix(g, "x"))) },
			[]string{"op sin", "no translation", "docs/gorgonia.md"}},
		{"only Im2Col", func(g *gorgonia.ExprGraph) {
			must(gorgonia.Im2Col(images(g), dense.Shape{2, 2}, dense.Shape{0, 0}, dense.Shape{1, 1}, dense.Shape{1, 1}))
		}, []string{"im2col", "use Conv2d"}},
		{"an assignment", func(g *gorgonia.ExprGraph) { gorgonia.Set(matrix(g, "x"), must(gorgonia.Neg(matrix(g, "y")))) },
			[]string{"an assignment", "Set after RunAll"}},
		{"an inner gradient that is read", func(g *gorgonia.ExprGraph) {
			x := matrix(g, "x")
			inner := must(gorgonia.Square(x))
			if _, err := gorgonia.Grad(must(gorgonia.Sum(must(gorgonia.Exp(inner)))), x); err != nil {
				t.Fatal(err)
			}
			var value gorgonia.Value
			gorgonia.Read(inner.Deriv(), &value)
		}, []string{"Gorgonia's gradients", "not the gradient by one input", "Grad returned for inputs"}},
		{"slices that hash alike", func(g *gorgonia.ExprGraph) {
			x := gorgonia.NewVector(g, dense.Float64, gorgonia.WithShape(600), gorgonia.WithName("x"), gorgonia.WithInit(gorgonia.Gaussian(0, 1)))
			one, other := must(gorgonia.Slice(x, gorgonia.S(1))), must(gorgonia.Slice(x, gorgonia.S(257)))
			must(gorgonia.Sub(one, other))
		}, []string{"T[1", "used twice", "begin 256 apart", "Reshape"}},
		{"dropouts that hash alike", func(g *gorgonia.ExprGraph) {
			x := matrix(g, "x")
			must(gorgonia.Add(must(gorgonia.Dropout(x, 0.2)), must(gorgonia.Dropout(x, 0.5))))
		}, []string{"Dropout", "used twice", "two dropouts", "Reshape"}},
		{"long steps that hash alike", func(g *gorgonia.ExprGraph) {
			x := gorgonia.NewVector(g, dense.Float64, gorgonia.WithShape(514), gorgonia.WithName("x"), gorgonia.WithInit(gorgonia.Gaussian(0, 1)))
			one, other := must(gorgonia.Slice(x, gorgonia.S(0, 514, 257))), must(gorgonia.Slice(x, gorgonia.S(0, 2)))
			must(gorgonia.Sub(one, other))
		}, []string{"used twice", "Reshape"}},
		{"convolutions that hash alike", func(g *gorgonia.ExprGraph) {
			x := gorgonia.NewTensor(g, dense.Float64, 4, gorgonia.WithShape(1, 1, 9, 9), gorgonia.WithName("x"), gorgonia.WithInit(gorgonia.Gaussian(0, 1)))
			w := gorgonia.NewTensor(g, dense.Float64, 4, gorgonia.WithShape(1, 1, 2, 2), gorgonia.WithName("w"), gorgonia.WithInit(gorgonia.Gaussian(0, 1)))
			v := gorgonia.NewTensor(g, dense.Float64, 4, gorgonia.WithShape(1, 1, 2, 2), gorgonia.WithName("v"), gorgonia.WithInit(gorgonia.Gaussian(0, 1)))
			one := must(gorgonia.Conv2d(x, w, dense.Shape{2, 2}, []int{0, 0}, []int{4, 4}, []int{1, 1}))
			other := must(gorgonia.Conv2d(x, v, dense.Shape{2, 2}, []int{0, 0}, []int{4, 4}, []int{3, 3}))
			must(gorgonia.Add(one, other))
		}, []string{"im2col", "used twice", "different dilation", "Reshape"}},
		{"constants that hash alike", func(g *gorgonia.ExprGraph) {
			constant := func(middle float64) *gorgonia.Node {
				return gorgonia.NewConstant(dense.New(dense.WithBacking([]float64{1, 2, 3, 4, 5, middle, 7, 8, 9, 10, 11, 12})))
			}
			x := gorgonia.NewVector(g, dense.Float64, gorgonia.WithShape(12), gorgonia.WithName("x"), gorgonia.WithInit(gorgonia.Gaussian(0, 1)))
			must(gorgonia.HadamardProd(must(gorgonia.Add(x, constant(6))), must(gorgonia.Sub(x, constant(0)))))
		}, []string{"used twice", "two large constants", "make it an input"}},
		{"group norms that hash alike", func(g *gorgonia.ExprGraph) {
			input := func(name string, shape ...int) *gorgonia.Node {
				return gorgonia.NewTensor(g, dense.Float64, len(shape), gorgonia.WithShape(shape...), gorgonia.WithName(name), gorgonia.WithInit(gorgonia.Gaussian(0, 1)))
			}
			x := input("x", 2, 4, 3, 3)
			norm := func(name string, epsilon float64) *gorgonia.Node {
				return must(gorgonia.GroupNorm(x, input("scale "+name, 1, 4, 1, 1), input("bias "+name, 1, 4, 1, 1), 2, 4, epsilon))
			}
			must(gorgonia.Add(norm("one", 1e-5), norm("two", 1)))
		}, []string{"GroupNorm", "used twice", "Reshape"}},
		{"dropout of everything", func(g *gorgonia.ExprGraph) { must(gorgonia.Dropout(matrix(g, "x"), 1)) },
			[]string{"Dropout", "probability is 1", "below 1"}},
		{"a removed node", func(g *gorgonia.ExprGraph) {
			x, y := matrix(g, "x"), matrix(g, "y")
			must(gorgonia.BinaryXent(y, matrix(g, "z"))) // has Gorgonia's own 1, which then stands for ours
			sum := must(gorgonia.Add(x, gorgonia.NewConstant(1.0)))
			must(gorgonia.Neg(sum))
			must(gorgonia.Log(sum))
		}, []string{"neg", "has removed", "Log1p"}},
		{"a softmax along no axis", func(g *gorgonia.ExprGraph) { must(gorgonia.SoftMax(matrix(g, "x"), 2)) },
			[]string{"Softmax", "axis is 2", "(3, 4)"}},
		{"nothing", func(g *gorgonia.ExprGraph) { matrix(g, "x") }, []string{"no node to compute"}},
	} {
		g := gorgonia.NewGraph()
		test.make(g)
		vm := NewMachine(g, Options{})
		wantError(t, vm.Err(), test.want...)
		if vm.Err() == nil {
			t.Errorf("%s: is not refused", test.name)
		}
		if err := vm.RunAll(); err != vm.Err() {
			t.Errorf("%s: RunAll returns %v, want %v", test.name, err, vm.Err())
		}
		if err := vm.Close(); err != nil {
			t.Errorf("%s: close: %v", test.name, err)
		}
	}
	wantError(t, NewMachine(nil, Options{}).Err(), "graph is nil")
}

// RunAll returns an error if a value that it needs is missing.
func TestRunErrors(t *testing.T) {
	g := gorgonia.NewGraph()
	x := gorgonia.NewMatrix(g, dense.Float64, gorgonia.WithShape(2, 2), gorgonia.WithName("x"))
	y := gorgonia.NewMatrix(g, dense.Float64, gorgonia.WithShape(2, 2), gorgonia.WithName("y"))
	logs := must(gorgonia.Log(must(gorgonia.Add(x, y))))
	gorgonia.WithName("logs")(logs)
	loss := must(gorgonia.Sum(logs))
	if _, err := gorgonia.Grad(loss, x); err != nil {
		t.Fatal(err)
	}
	vm := NewMachine(g, Options{})
	wantError(t, vm.RunAll(), `node "x"`, "without a value", "Let it")
	zeros := dense.New(dense.WithShape(2, 2), dense.Of(dense.Float64))
	for _, n := range []*gorgonia.Node{x, y} {
		if err := vm.Let(n, zeros); err != nil {
			t.Fatal(err)
		}
	}
	wantError(t, vm.RunAll(), "NaN or an infinity", "log", `"logs"`)
	wantError(t, vm.Set(y, loss), "no value")
	other := gorgonia.NewScalar(gorgonia.NewGraph(), dense.Float64, gorgonia.WithName("other"))
	wantError(t, vm.Let(other, 1.0), "not a node of the machine's graph")
	wantError(t, vm.Set(x, other), "not a node of the machine's graph")
	if err := vm.Close(); err != nil {
		t.Fatal(err)
	}
	wantError(t, vm.RunAll(), "closed")
	if err := vm.Close(); err != nil {
		t.Error("closing again:", err)
	}
}

// Gorgonia's options that a Machine does not support are errors; the others work as in Gorgonia.
func TestOptions(t *testing.T) {
	g := gorgonia.NewGraph()
	x := gorgonia.NewVector(g, dense.Float64, gorgonia.WithShape(2), gorgonia.WithName("x"), gorgonia.WithValue(dense.New(dense.WithBacking([]float64{1, 2}))))
	if _, err := gorgonia.Grad(must(gorgonia.Sum(must(gorgonia.Square(x)))), x); err != nil {
		t.Fatal(err)
	}
	for _, option := range []gorgonia.VMOpt{
		gorgonia.WithLogger(slog.NewLogLogger(slog.DiscardHandler, 0)), gorgonia.WithWatchlist(),
		gorgonia.WithNaNWatch(), gorgonia.WithInfWatch(), gorgonia.WithValueFmt("%v"),
	} {
		if err := NewMachine(g, Options{}, option).Err(); err == nil {
			t.Error("an option without effect is accepted")
		}
	}
	program, locations, err := gorgonia.Compile(g)
	if err != nil {
		t.Fatal(err)
	}
	vm := NewMachine(g, Options{}, gorgonia.WithPrecompiled(program, locations), gorgonia.BindDualValues(x), gorgonia.TraceExec())
	defer vm.Close()
	// With BindDualValues gradients add up until a solver takes them.
	for _, want := range []float64{2, 4} {
		if err := vm.RunAll(); err != nil {
			t.Fatal(err)
		}
		if g, err := x.Grad(); err != nil || floatsOf(g)[0] != want || floatsOf(x.Deriv().Value())[0] != 2 {
			t.Errorf("the gradient is %v, and Grad's node %v, want %v and 2 (%v)", g, x.Deriv().Value(), want, err)
		}
		vm.Reset()
	}
	part, locations, err := gorgonia.CompileFunction(g, gorgonia.Nodes{x}, gorgonia.Nodes{x.Deriv()})
	if err != nil {
		t.Fatal(err)
	}
	wantError(t, NewMachine(g, Options{}, gorgonia.WithPrecompiled(part, locations)).Err(), "must be of the whole graph")
}

// A network is refused if one example's output would depend on others.
func TestNetworkErrors(t *testing.T) {
	must := gorgonia.Must
	newInput := func(g *gorgonia.ExprGraph, name string, shape ...int) *gorgonia.Node {
		return gorgonia.NewTensor(g, dense.Float32, len(shape), gorgonia.WithShape(shape...), gorgonia.WithName(name), gorgonia.WithInit(gorgonia.Gaussian(0, 1)))
	}
	for _, test := range []struct {
		name string
		make func(x, w *gorgonia.Node) *gorgonia.Node
		want []string
	}{
		{"a softmax along the batch", func(x, w *gorgonia.Node) *gorgonia.Node { return must(gorgonia.SoftMax(must(gorgonia.Mul(x, w)), 0)) },
			[]string{"along the batch", "others of its batch"}},
		{"a mean over the batch", func(x, w *gorgonia.Node) *gorgonia.Node {
			h := must(gorgonia.Mul(x, w))
			return must(gorgonia.BroadcastSub(h, must(gorgonia.Reshape(must(gorgonia.Mean(h, 0)), dense.Shape{1, 3})), nil, []byte{0}))
		}, []string{"along the batch"}},
		{"a slice of the batch", func(x, w *gorgonia.Node) *gorgonia.Node {
			h := must(gorgonia.Mul(x, w))
			return must(gorgonia.Concat(0, must(gorgonia.Slice(h, gorgonia.S(0, 2))), must(gorgonia.Slice(h, gorgonia.S(2, 6)))))
		}, []string{"along the batch"}},
		{"examples times examples", func(x, w *gorgonia.Node) *gorgonia.Node {
			h := must(gorgonia.Mul(x, w))
			return must(gorgonia.Mul(must(gorgonia.Mul(h, must(gorgonia.Transpose(h)))), h))
		}, []string{"examples with each other"}},
		{"a transposed batch", func(x, w *gorgonia.Node) *gorgonia.Node {
			return must(gorgonia.Transpose(must(gorgonia.Tanh(must(gorgonia.Transpose(must(gorgonia.Mul(x, w))))))))
		}, []string{"axis of the examples"}},
		{"another input", func(x, w *gorgonia.Node) *gorgonia.Node {
			return must(gorgonia.Add(must(gorgonia.Mul(x, w)), newInput(x.Graph(), "y", 6, 3)))
		}, []string{`node "y"`, "neither the network's input nor one of its parameters"}},
		{"a parameter that is not used", func(x, _ *gorgonia.Node) *gorgonia.Node { return must(gorgonia.Tanh(x)) },
			[]string{`node "w"`, "does not depend"}},
	} {
		g := gorgonia.NewGraph()
		x, w := newInput(g, "x", 6, 4), newInput(g, "w", 4, 3)
		_, err := NewNetwork(x, test.make(x, w), w)
		if err == nil {
			t.Errorf("%s: is not refused", test.name)
		}
		wantError(t, err, test.want...)
	}
	g := gorgonia.NewGraph()
	x, w := newInput(g, "x", 6, 4), newInput(g, "w", 4, 3)
	empty := gorgonia.NewMatrix(g, dense.Float32, gorgonia.WithShape(4, 3), gorgonia.WithName("empty"))
	y := must(gorgonia.Mul(x, w))
	_, err := NewNetwork(x, must(gorgonia.Mul(x, empty)), empty)
	wantError(t, err, `node "empty"`, "no value to start from")
	_, err = NewNetwork(x, must(gorgonia.Sum(y, 0)), w)
	wantError(t, err, "must have shapes [B ...] with the same batch")
	_, err = NewNetwork(x, y, y)
	wantError(t, err, "must be an input other than the network's")
	network, err := NewNetwork(x, y, w)
	if err != nil {
		t.Fatal(err)
	}
	b := graph.New(tensor.Float32)
	network.Apply(b, b.Data("images", tensor.Float32, 2, 1, 3, 3))
	wantError(t, b.Err(), "[2 1 3 3]", "examples must have the elements of shape [4]")
}
