package graph_test

import (
	"strings"
	"testing"

	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/tensor"
)

// called is the op y = x; calls returns the calls of its launch on a GPU.
type called struct {
	calls func(l *graph.Lowering) []tensor.Call
}

func (*called) Name() string                                  { return "called" }
func (*called) Shape(in []tensor.Shape) (tensor.Shape, error) { return in[0], nil }
func (c *called) Lower(l *graph.Lowering) {
	run := func(a *tensor.Args) { copy(tensor.Slice[float32](a, 0), tensor.Slice[float32](a, 1)) }
	l.EmitCalls("called", c.calls(l), tensor.Single(run), l.Out(), l.In(0))
}

// A GPU's calls must access only what the launch's arguments declare.
func TestCallsAreChecked(t *testing.T) {
	grid := tensor.Threads(4)
	for _, test := range []struct {
		want  string // in the error; "" is for none
		calls func(l *graph.Lowering) []tensor.Call
	}{
		{"", func(l *graph.Lowering) []tensor.Call { return []tensor.Call{l.Call("one", grid, l.Out(), l.In(0))} }},
		{"", func(l *graph.Lowering) []tensor.Call {
			w := tensor.NewWorkspace(tensor.Float64, 4)
			return []tensor.Call{l.Call("one", grid, tensor.Out(w), l.In(0)), l.Call("two", grid, l.Out(), tensor.In(w))}
		}},
		{"launch called_f32 (called) must have at least one call for a GPU, got none", func(*graph.Lowering) []tensor.Call { return nil }},
		{"call one_f32 has no grid", func(l *graph.Lowering) []tensor.Call {
			return []tensor.Call{l.Call("one", nil, l.Out(), l.In(0))}
		}},
		{"call two_f32: argument 1 is a workspace that no earlier call has written", func(l *graph.Lowering) []tensor.Call {
			w := tensor.NewWorkspace(tensor.Float64, 4)
			return []tensor.Call{l.Call("two", grid, l.Out(), tensor.In(w)), l.Call("one", grid, tensor.Out(w), l.In(0))}
		}},
		{"argument 1, other scratch+-1 float32[4], is not an argument of the launch", func(l *graph.Lowering) []tensor.Call {
			other := tensor.NewBuffer("other", tensor.Scratch, tensor.Float32, 4)
			return []tensor.Call{l.Call("one", grid, l.Out(), tensor.In(other))}
		}},
		{"float32[4], is written, and the launch only reads it", func(l *graph.Lowering) []tensor.Call {
			return []tensor.Call{l.Call("one", grid, l.Out(), l.InOut(0))}
		}},
		{"no call writes called", func(l *graph.Lowering) []tensor.Call { return []tensor.Call{l.Call("one", grid, l.In(0))} }},
	} {
		b := graph.New(tensor.Float32)
		b.Output("y", b.Apply(&called{test.calls}, b.State("x", nil, 4)))
		switch _, err := b.Compile(); {
		case test.want == "" && err != nil:
			t.Errorf("got %v, want no error", err)
		case test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)):
			t.Errorf("got %v, want an error with %q", err, test.want)
		}
	}
}

// unwritten has some launches, none of which writes its output.
type unwritten struct{ launches int }

func (unwritten) Name() string                                  { return "unwritten" }
func (unwritten) Shape(in []tensor.Shape) (tensor.Shape, error) { return in[0], nil }
func (u unwritten) Lower(l *graph.Lowering) {
	for range u.launches {
		l.Emit("unwritten", tensor.Threads(4), tensor.Single(func(*tensor.Args) {}), l.InOut(0))
	}
}

// An op that leaves its output unwritten would pass on what the memory held before.
func TestUnwrittenOutputsAreRefused(t *testing.T) {
	for launches := range 2 {
		b := graph.New(tensor.Float32)
		b.Output("y", b.Apply(unwritten{launches}, b.State("x", nil, 4)))
		if _, err := b.Compile(); err == nil || !strings.Contains(err.Error(), "unwritten: Lower emits no launch that writes the output") {
			t.Errorf("%d launches: error %v", launches, err)
		}
	}
}
