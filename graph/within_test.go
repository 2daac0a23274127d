package graph_test

import (
	"fmt"
	"math"
	"regexp"
	"strings"
	"testing"

	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/graph/op"
	"github.com/pollen-ml/pollen/tensor"
)

// TestWithin: in a graph of float64, nodes that are made within float32 compute in float32, but
// parameters and their gradients are float64. A parameter's gradient is the sum over its uses in
// both types.
func TestWithin(t *testing.T) {
	b := graph.New(tensor.Float64)
	end := b.Within(tensor.Float32)
	w := b.Parameter("w", constant(1./3), 2)
	if graph.DTypeOf(w) != tensor.Float32 || b.DType() != tensor.Float32 {
		t.Errorf("a layer gets %v, of a builder of %v", graph.DTypeOf(w), b.DType())
	}
	narrow := b.Apply(op.Sum{}, b.Apply(op.Squared{}, w))
	end()
	p := b.Parameters()[0]
	if graph.DTypeOf(p) != tensor.Float64 || b.DType() != tensor.Float64 {
		t.Errorf("the parameter holds %v, the builder is of %v", graph.DTypeOf(p), b.DType())
	}
	if b.Cast(p) != p {
		t.Error("As of what has the float already is another node")
	}
	substituted := b.Cast(b.Substitute(narrow, map[*graph.Node]*graph.Node{p: b.Apply(op.Scale{Factor: 2}, p)}))
	wide := b.Apply(op.Sum{}, b.Apply(op.Squared{}, p))
	loss := b.Apply(op.Add{}, b.Cast(narrow), wide)
	gradient := b.Gradients(loss, p)[0]
	b.Output("narrow", b.Cast(narrow))
	b.Output("wide", wide)
	b.Output("substituted", substituted)
	b.Output("gradient", gradient)
	session := load(t, b, newHost(t, 1), graph.LoadOptions{})
	must(t, session.Evaluate())
	rounded, twice := float32(1./3), float32(2./3)
	for name, want := range map[string]float64{
		"narrow": float64(2 * rounded * rounded), "wide": 2. / 9, "substituted": float64(2 * twice * twice), "gradient": 2*float64(rounded) + 2./3,
	} {
		size := 1
		if name == "gradient" {
			size = 2
		}
		if got := read(t, session, name, 0, size)[0]; math.Abs(got-want) > 1e-15 {
			t.Errorf("%s is %.17g, want %.17g", name, got, want)
		}
	}
}

// TestWithinIsTogether: the launches that compute in float32 are consecutive, so that they can run
// together. Conversions between the types come before and after them.
func TestWithinIsTogether(t *testing.T) {
	b := graph.New(tensor.Float64)
	end := b.Within(tensor.Float32)
	first := b.Apply(op.Squared{}, b.Parameter("first", constant(1), 8))
	second := b.Apply(op.Multiply{}, first, b.Parameter("second", constant(2), 8))
	narrow := b.Apply(op.Sum{}, b.Apply(op.Squared{}, second))
	end()
	loss := b.Cast(narrow)
	for _, p := range b.Parameters() {
		loss = b.Apply(op.Add{}, loss, b.Apply(op.Sum{}, b.Apply(op.Squared{}, p)))
	}
	for i, g := range b.Gradients(loss, b.Parameters()...) {
		b.Output(fmt.Sprint("gradient ", i), g)
	}
	program, err := b.Compile()
	must(t, err)
	order := ""
	for _, l := range program.Launches() {
		switch {
		case strings.HasPrefix(l.Kernel, "cast_"):
			order += "a" // from one float to the other
		case strings.HasSuffix(l.Kernel, "_f32"):
			order += "n"
		default:
			order += "w"
		}
	}
	// The third conversion is of the loss's gradient, from which the network's gradients are
	// computed.
	if !regexp.MustCompile("^aan+an+[aw]+$").MatchString(order) {
		t.Errorf("the order is %s: what computes in float32 is not together", order)
	}
}

func TestWithinRefuses(t *testing.T) {
	b := graph.New(tensor.Float64)
	b.Within(tensor.Uint8)
	if err := b.Err(); err == nil || !strings.Contains(err.Error(), "within: the type must be float32 or float64, got uint8") {
		t.Errorf("error %v", err)
	}
	b = graph.New(tensor.Float64)
	end := b.Within(tensor.Float32)
	narrow := b.Apply(op.Sum{}, b.Parameter("w", nil, 2))
	end()
	b.Record("narrow", narrow)
	if err := b.Err(); err == nil || !strings.Contains(err.Error(), "the node must be of float64, got float32") {
		t.Errorf("error %v", err)
	}
}
