package graph_test

import (
	"strings"
	"testing"

	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/graph/op"
	"github.com/pollen-ml/pollen/tensor"
)

// TestSubstitute: a loss at another parameter has its own gradient, and the same dropout mask.
func TestSubstitute(t *testing.T) {
	const n = 33
	b := graph.New(tensor.Float64)
	w, v, x := b.Parameter("w", constant(4), n), b.Parameter("v", constant(8), n), b.Parameter("x", constant(2), n)
	loss := b.Apply(op.Multiply{}, b.Apply(op.Squared{}, w), b.Apply(op.Exp{}, x))
	loss = b.Apply(op.Sum{}, b.Apply(op.Dropout{Rate: 0.5, Stream: b.Stream()}, loss, b.Header()))
	applied := len(b.Applications())
	other := b.Substitute(loss, map[*graph.Node]*graph.Node{w: v})
	if got := len(b.Applications()) - applied; got != 4 {
		t.Errorf("%d new applications, want 4: exp(x) depends on none of the places", got)
	}
	gradients := b.Gradients(b.Apply(op.Add{}, loss, other), w, v)
	b.Output("loss", loss)
	b.Output("other", other)
	b.Output("dw", gradients[0])
	b.Output("dv", gradients[1])
	s := load(t, b, newHost(t, 1), graph.LoadOptions{Seed: 4})
	must(t, s.Run(1))
	if one, two := read(t, s, "loss", 0, 1)[0], read(t, s, "other", 0, 1)[0]; one == 0 || two != 4*one {
		t.Errorf("losses %v and %v, want 4 times as much", one, two)
	}
	dw, dv := read(t, s, "dw", 0, n), read(t, s, "dv", 0, n)
	zeros := 0
	for i := range dw {
		if dv[i] != 2*dw[i] {
			t.Errorf("gradients %d are %v and %v, want twice as much", i, dw[i], dv[i])
		}
		if dw[i] == 0 {
			zeros++
		}
	}
	if zeros == 0 || zeros == n {
		t.Errorf("%d of %d elements were dropped", zeros, n)
	}
}

func TestSubstituteRefuses(t *testing.T) {
	for name, c := range map[string]struct {
		message string
		build   func(b *graph.Builder, w, loss *graph.Node)
	}{
		"another shape": {"must have its type and shape", func(b *graph.Builder, w, loss *graph.Node) {
			b.Substitute(loss, map[*graph.Node]*graph.Node{w: b.Parameter("v", nil, 3)})
		}},
		"nothing to replace": {"depends on none", func(b *graph.Builder, _, loss *graph.Node) {
			b.Substitute(loss, map[*graph.Node]*graph.Node{b.Parameter("u", nil, 2): b.Parameter("v", nil, 2)})
		}},
		"nil": {"the node is nil", func(b *graph.Builder, w, _ *graph.Node) { b.Substitute(nil, map[*graph.Node]*graph.Node{w: w}) }},
		"after gradients": {"before Gradients", func(b *graph.Builder, w, loss *graph.Node) {
			b.Gradients(loss, w)
			b.Substitute(loss, map[*graph.Node]*graph.Node{w: b.Parameter("v", nil, 2)})
		}},
		"an update": {"change the same state", func(b *graph.Builder, w, loss *graph.Node) {
			u := b.Apply(descend{}, w, b.Parameter("g", nil, 2))
			b.Substitute(u, map[*graph.Node]*graph.Node{w: b.Parameter("v", nil, 2)})
		}},
	} {
		b := graph.New(tensor.Float64)
		w := b.Parameter("w", nil, 2)
		c.build(b, w, b.Apply(op.Sum{}, w))
		if b.Err() == nil || !strings.Contains(b.Err().Error(), c.message) {
			t.Errorf("%s: error %v, want one with %q", name, b.Err(), c.message)
		}
	}
}
