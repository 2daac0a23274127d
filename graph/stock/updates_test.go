package stock

import (
	"fmt"
	"testing"

	"gorgonia.org/gorgonia"
	dense "gorgonia.org/tensor"
)

// settable is a machine with Set: a TapeMachine or a Machine.
type settable interface {
	gorgonia.VM
	Set(a, b *gorgonia.Node) error
}

// regression trains logistic regression as Gorgonia's example does: the steps of gradient descent
// are nodes of the graph, which Set copies to the weights. It returns the weights after each step.
func regression(t *testing.T, open func(g *gorgonia.ExprGraph) settable, name bool) (steps [][]float64, update *gorgonia.Node) {
	t.Helper()
	b := newBench()
	loss, parameters := exampleGraphs["logistic regression"](b)
	gradients, err := gorgonia.Grad(loss, parameters...)
	if err != nil {
		t.Fatal(err)
	}
	// The rate is an expression that only the updates use.
	rate := must(gorgonia.Mul(gorgonia.NewConstant(0.5), gorgonia.NewScalar(b.g, dense.Float64, gorgonia.WithName("rate"), gorgonia.WithValue(0.8))))
	var updates gorgonia.Nodes
	for i, w := range parameters {
		updates = append(updates, must(gorgonia.Sub(w, must(gorgonia.Mul(rate, gradients[i])))))
		if name {
			gorgonia.WithName("next " + w.Name())(updates[i])
		}
	}
	vm := open(b.g)
	defer vm.Close()
	for range 5 {
		if err := vm.RunAll(); err != nil {
			t.Fatal(err)
		}
		for i, w := range parameters {
			if err := vm.Set(w, updates[i]); err != nil {
				t.Fatal(err)
			}
			steps = append(steps, append([]float64{}, numbers(t, w.Value())...))
		}
		vm.Reset()
	}
	return steps, updates[0]
}

// Updates that are nodes of the graph train as on a TapeMachine, with and without names.
func TestUpdateNodes(t *testing.T) {
	want, _ := regression(t, func(g *gorgonia.ExprGraph) settable { return gorgonia.NewTapeMachine(g) }, false)
	if nearly(want[0], want[len(want)-2], 1e-3) == nil {
		t.Fatal("the reference does not train")
	}
	for _, named := range []bool{false, true} {
		got, _ := regression(t, func(g *gorgonia.ExprGraph) settable { return NewMachine(g, Options{}) }, named)
		for i := range want {
			if err := nearly(got[i], want[i], 1e-12); err != nil {
				t.Errorf("named %t, result %d: %v", named, i, err)
			}
		}
	}
}

// A gradient that Grad returned, and what is computed from it, can be read.
func TestReadGradients(t *testing.T) {
	b := newBench()
	x, y := b.weights("x", 3, 4), b.weights("y", 3, 4)
	loss := must(gorgonia.Sum(must(gorgonia.HadamardProd(must(gorgonia.Square(x)), y))))
	gradients, err := gorgonia.Grad(loss, x, y)
	if err != nil {
		t.Fatal(err)
	}
	var gradient, length, size gorgonia.Value
	gorgonia.Read(gradients[0], &gradient)
	gorgonia.Read(must(gorgonia.Sum(must(gorgonia.Square(gradients[1])))), &length)
	gorgonia.Read(loss, &size)
	vm := NewMachine(b.g, Options{})
	defer vm.Close()
	if err := vm.RunAll(); err != nil {
		t.Fatal(err)
	}
	var want []float64
	total, sum := 0.0, 0.0
	for i, v := range numbers(t, x.Value()) {
		want = append(want, 2*v*numbers(t, y.Value())[i])
		total, sum = total+v*v*v*v, sum+v*v*numbers(t, y.Value())[i]
	}
	for name, err := range map[string]error{
		"gradient": nearly(numbers(t, gradient), want, 1e-12), "its length": nearly(numbers(t, length), []float64{total}, 1e-12),
		"loss": nearly(numbers(t, size), []float64{sum}, 1e-12),
	} {
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// With KeepAll all nodes have their values, as by Gorgonia's ops one by one; the loss and gradients
// are the same.
func TestKeepAll(t *testing.T) {
	for name, build := range exampleGraphs {
		loss, parameters := build(newBench())
		if _, err := gorgonia.Grad(loss, parameters...); err != nil {
			t.Fatal(err)
		}
		want := onNaive(t, loss, parameters)
		wantStep(t, name, onMachine(t, Options{KeepAll: true}, loss, parameters), want, 1e-12, 1e-10)
		values, err := naive(loss.Graph())
		if err != nil {
			t.Fatal(err)
		}
		s, err := surveyOf(loss.Graph())
		if err != nil {
			t.Fatal(err)
		}
		kept, without := 0, 0
		for _, n := range s.all {
			if node := s.info[n]; node.isInput() || node.isConstant() || node.isStatement() || s.gradient[n] || n.Dtype() != dense.Float64 {
				continue
			}
			if n.Value() == nil {
				without++
				continue
			}
			kept++
			if err := nearly(numbers(t, n.Value()), numbers(t, values[n]), 1e-9); err != nil {
				t.Errorf("%s: %v: %v", name, n, err)
			}
		}
		if kept < 5 || without > 0 && name != "convnet" && name != "resnet" {
			t.Errorf("%s: %d nodes have values, %d have none", name, kept, without)
		}
	}
}

// Options for other machines than TapeMachines are errors and do not panic.
func TestOtherMachinesOptions(t *testing.T) {
	for name, option := range map[string]gorgonia.VMOpt{
		"ExecuteFwdOnly": gorgonia.ExecuteFwdOnly(), "ExecuteBwdOnly": gorgonia.ExecuteBwdOnly(), "LogFwd": gorgonia.LogFwd(),
		"LogBwd": gorgonia.LogBwd(), "nil": nil,
	} {
		b := newBench()
		must(gorgonia.Square(b.weights("x", 3)))
		if err := NewMachine(b.g, Options{}, option).Err(); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

// Without Grad, as in a program that was written for a LispMachine, a machine computes no
// gradients. The solver reports that.
func TestWithoutGrad(t *testing.T) {
	b := newBench()
	w := b.weights("w", 3)
	loss := must(gorgonia.Sum(must(gorgonia.Square(w))))
	vm := NewMachine(b.g, Options{})
	defer vm.Close()
	if err := vm.RunAll(); err != nil || loss.Value() == nil {
		t.Fatalf("loss %v, %v", loss.Value(), err)
	}
	err := gorgonia.NewVanillaSolver().Step(gorgonia.NodesToValueGrads(gorgonia.Nodes{w}))
	wantError(t, err, "No Gradient")
}

// A graph may have only truth values besides its inputs.
func TestComparedComparisons(t *testing.T) {
	b := newBench()
	x, y := b.holding("x", []float64{1, 2, 3}, 3), b.holding("y", []float64{2, 2, 2}, 3)
	above, atLeast := must(gorgonia.Gt(x, y, false)), must(gorgonia.Gte(x, y, false))
	equal := must(gorgonia.Eq(above, atLeast, false))
	vm := NewMachine(b.g, Options{KeepAll: true})
	defer vm.Close()
	if err := vm.RunAll(); err != nil {
		t.Fatal(err)
	}
	for n, want := range map[*gorgonia.Node]string{above: "[false false true]", atLeast: "[false true true]", equal: "[true false true]"} {
		if n.Value() == nil {
			t.Errorf("%v has no value", n)
		} else if got := fmt.Sprint(n.Value().Data()); got != want {
			t.Errorf("%v is %s, want %s", n, got, want)
		}
	}
	if got := fmt.Sprint(adopted(t, equal)); got != "[1 0 1]" {
		t.Errorf("adopted, it is %s, want [1 0 1]", got)
	}
}

// A node without a name that other nodes use, and nobody reads, has no value, so that it can be
// fused; a name, Read or KeepAll gives it one, as a TapeMachine does.
func TestUnnamedValues(t *testing.T) {
	for _, c := range []struct {
		name             string
		named, read, all bool
		has              bool
	}{{name: "unnamed"}, {"named", true, false, false, true}, {"read", false, true, false, true}, {"KeepAll", false, false, true, true}} {
		b := newBench()
		x := b.weights("x", 3)
		inner := must(gorgonia.Square(x))
		if c.named {
			gorgonia.WithName("inner")(inner)
		}
		var value gorgonia.Value
		if c.read {
			gorgonia.Read(inner, &value)
		}
		loss := must(gorgonia.Sum(inner))
		vm := NewMachine(b.g, Options{KeepAll: c.all})
		if err := vm.RunAll(); err != nil {
			t.Fatal(err)
		}
		if got := inner.Value() != nil; got != c.has || loss.Value() == nil {
			t.Errorf("%s: a value %v, want %v; the loss is %v", c.name, inner.Value(), c.has, loss.Value())
		} else if got {
			values := numbers(t, inner.Value())
			want := numbers(t, x.Value())[2]
			if err := nearly(values[2:], []float64{want * want}, 1e-12); err != nil {
				t.Errorf("%s: %v", c.name, err)
			}
		}
		if err := vm.Close(); err != nil {
			t.Error(err)
		}
	}
}
