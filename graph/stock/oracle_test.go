package stock

import (
	"math"
	"strings"

	"github.com/pkg/errors"
	"gorgonia.org/gorgonia"
	dense "gorgonia.org/tensor"
)

// naive computes every node of a graph by its own op, with values in separate memory, in
// Gorgonia's order.
func naive(g *gorgonia.ExprGraph) (map[*gorgonia.Node]gorgonia.Value, error) {
	sorted, err := gorgonia.Sort(g)
	if err != nil {
		return nil, err
	}
	s, err := surveyOf(g)
	if err != nil {
		return nil, err
	}
	values := map[*gorgonia.Node]gorgonia.Value{}
	for i := len(sorted) - 1; i >= 0; i-- {
		n := sorted[i]
		m := s.info[n]
		if m.isStatement() {
			continue
		}
		if m.isInput() || m.isConstant() {
			values[n] = n.Value()
			continue
		}
		var inputs []gorgonia.Value
		for _, input := range m.inputs {
			inputs = append(inputs, plain(values[input]))
		}
		value, err := n.Op().Do(inputs...)
		if err != nil {
			return nil, errors.Wrapf(err, "%v", n)
		}
		values[n] = plain(value)
	}
	return values, nil
}

// plain returns a value without Gorgonia's record of a transposition, which confuses its products.
func plain(v gorgonia.Value) gorgonia.Value {
	d, ok := v.(*dense.Dense)
	if !ok || d.IsScalar() || floatsOf(d) == nil {
		return v
	}
	if d.RequiresIterator() {
		d = d.Materialize().(*dense.Dense)
	}
	switch data := d.Data().(type) {
	case []float64:
		return dense.New(dense.WithShape(d.Shape().Clone()...), dense.WithBacking(append([]float64(nil), data...)))
	case []float32:
		return dense.New(dense.WithShape(d.Shape().Clone()...), dense.WithBacking(append([]float32(nil), data...)))
	}
	return v
}

// stepped is the result of a run of a graph: the loss and the gradients by parameters.
type stepped struct {
	loss      float64
	gradients [][]float64
}

func numbers(t failing, v gorgonia.Value) []float64 {
	t.Helper()
	if v == nil {
		t.Fatalf("no value")
	}
	if d, ok := v.(*dense.Dense); ok && d.RequiresIterator() {
		v = d.Materialize().(*dense.Dense)
	}
	list := floatsOf(v)
	if list == nil {
		t.Fatalf("%T holds no floats", v.Data())
	}
	return list
}

// onNaive, onTape and onMachine run a graph whose Grad has been called.
func onNaive(t failing, loss *gorgonia.Node, parameters gorgonia.Nodes) stepped {
	t.Helper()
	values, err := naive(loss.Graph())
	if err != nil {
		t.Fatalf("%v", err)
	}
	out := stepped{loss: numbers(t, values[loss])[0]}
	for _, p := range parameters {
		out.gradients = append(out.gradients, numbers(t, values[p.Deriv()]))
	}
	return out
}

func onTape(t failing, loss *gorgonia.Node, parameters gorgonia.Nodes) stepped {
	t.Helper()
	var value gorgonia.Value
	gorgonia.Read(loss, &value)
	vm := gorgonia.NewTapeMachine(loss.Graph(), gorgonia.BindDualValues(parameters...))
	defer vm.Close()
	if err := vm.RunAll(); err != nil {
		t.Fatalf("%v", err)
	}
	return taken(t, value, parameters)
}

func onMachine(t failing, o Options, loss *gorgonia.Node, parameters gorgonia.Nodes) stepped {
	t.Helper()
	vm := NewMachine(loss.Graph(), o)
	defer vm.Close()
	if err := vm.RunAll(); err != nil {
		t.Fatalf("%v", err)
	}
	return taken(t, loss.Value(), parameters)
}

func taken(t failing, loss gorgonia.Value, parameters gorgonia.Nodes) stepped {
	t.Helper()
	out := stepped{loss: numbers(t, loss)[0]}
	for _, p := range parameters {
		g, err := p.Grad()
		if err != nil {
			t.Fatalf("%v", err)
		}
		out.gradients = append(out.gradients, append([]float64(nil), numbers(t, g)...))
	}
	return out
}

// wantStep compares a step with another: the loss to rel, gradients to gradRel of their largest
// element.
func wantStep(t failing, name string, got, want stepped, rel, gradRel float64) {
	t.Helper()
	if d := math.Abs(got.loss - want.loss); !(d <= rel*max(1, math.Abs(want.loss))) {
		t.Errorf("%s: loss %v, want %v", name, got.loss, want.loss)
	}
	for i := range want.gradients {
		if len(got.gradients[i]) != len(want.gradients[i]) {
			t.Fatalf("%s: gradient %d has %d elements, want %d", name, i, len(got.gradients[i]), len(want.gradients[i]))
		}
		largest := 1e-3
		for _, v := range want.gradients[i] {
			largest = max(largest, math.Abs(v))
		}
		for j, v := range want.gradients[i] {
			if d := math.Abs(got.gradients[i][j] - v); !(d <= gradRel*largest) {
				t.Errorf("%s: gradient %d, element %d: %v, want %v", name, i, j, got.gradients[i][j], v)
				break
			}
		}
	}
}

// failing is a test, or one of rapid's.
type failing interface {
	Helper()
	Errorf(format string, args ...any)
	Fatalf(format string, args ...any)
}

// panicking is a test whose failures are panics.
type panicking struct{}

func (panicking) Helper()                           {}
func (panicking) Errorf(format string, args ...any) { panic(errors.Errorf(format, args...)) }
func (panicking) Fatalf(format string, args ...any) { panic(errors.Errorf(format, args...)) }

func wantError(t failing, err error, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("got error %v, want one with %q", err, part)
			return
		}
	}
}
