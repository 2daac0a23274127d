package graph_test

import (
	"strings"
	"testing"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/graph/op"
	"github.com/pollen-ml/pollen/tensor"
)

// TestParameterHook: a layer gets the hook's output, twice the parameter, which is itself made
// without the hook; once the hook is gone, layers get the parameters themselves.
func TestParameterHook(t *testing.T) {
	b := graph.New(tensor.Float64)
	b.Hooks.Parameter = func(name string, initialize graph.Initializer, shape ...int) *graph.Node {
		return b.Apply(op.Scale{Factor: 2}, b.Parameter(name+".half", initialize, shape...))
	}
	w := b.Parameter("w", constant(3), 2, 3)
	b.Hooks = graph.Hooks{}
	v := b.Parameter("v", constant(3), 2, 3)
	b.Output("sum", b.Apply(op.Add{}, w, v))
	s := load(t, b, newHost(t, 1), graph.LoadOptions{})
	must(t, s.Run(1))
	if got := read(t, s, "sum", 0, 6); got[0] != 9 || got[5] != 9 {
		t.Errorf("sum is %v, want 2*3 + 3", got)
	}
	var names []string
	for _, p := range s.Program().Parameters() {
		names = append(names, p.Name)
	}
	if got := strings.Join(names, " "); got != "w.half v" {
		t.Errorf("parameters %q, want w.half and v", got)
	}
}

// TestApplyHook: the hook is called for the ops of layers, but not for ops that it applies itself,
// nor for gradients.
func TestApplyHook(t *testing.T) {
	b := graph.New(tensor.Float64)
	w := b.Parameter("w", constant(3), 4)
	var seen []string
	b.Hooks.Apply = func(o graph.Op, in []*graph.Node) *graph.Node {
		seen = append(seen, o.Name())
		if _, ok := o.(op.Exp); !ok {
			return nil
		}
		return b.Apply(op.Squared{}, in[0])
	}
	loss := b.Apply(op.Sum{}, b.Apply(op.Exp{}, b.Apply(op.Negate{}, w)))
	gradient := b.Gradients(loss, w)[0]
	if got := strings.Join(seen, " "); got != "negate exp sum" {
		t.Errorf("the hook saw %q", got)
	}
	b.Output("loss", loss)
	b.Output("gradient", gradient)
	s := load(t, b, newHost(t, 1), graph.LoadOptions{})
	must(t, s.Run(1))
	if got := read(t, s, "loss", 0, 1)[0]; got != 36 {
		t.Errorf("loss is %v, want 4 * 3^2", got)
	}
	if got := read(t, s, "gradient", 0, 4)[3]; got != 6 {
		t.Errorf("gradient is %v, want 2 * 3", got)
	}
}

// TestHooksAndErrors: hooks are not called once building has failed; a hook's error becomes the
// builder's error, and the hooks are in place again after it.
func TestHooksAndErrors(t *testing.T) {
	b := graph.New(tensor.Float64)
	w, calls := b.Parameter("w", nil, 2), 0
	b.Hooks.Apply = func(graph.Op, []*graph.Node) *graph.Node {
		calls++
		b.Fail(errors.New("the hook's"))
		return nil
	}
	b.Hooks.Parameter = func(string, graph.Initializer, ...int) *graph.Node {
		calls++
		return w
	}
	if n := b.Apply(op.Exp{}, w); n != nil || b.Err() == nil || b.Err().Error() != "the hook's" {
		t.Errorf("node %v, error %v", n, b.Err())
	}
	if b.Apply(op.Exp{}, w) != nil || b.Parameter("v", nil, 2) != nil || calls != 1 {
		t.Errorf("%d calls of hooks, want 1", calls)
	}
	if b.Hooks.Apply == nil || b.Hooks.Parameter == nil {
		t.Error("the hooks are gone")
	}
	b = graph.New(tensor.Float64)
	b.Hooks.Apply = func(graph.Op, []*graph.Node) *graph.Node { return nil }
	if b.Apply(op.Exp{}, nil) != nil || b.Err() == nil || !strings.Contains(b.Err().Error(), "input 0 is nil") {
		t.Errorf("error %v, want one about the nil input", b.Err())
	}
}
