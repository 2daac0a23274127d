package graph_test

import (
	"strings"
	"testing"

	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/graph/op"
	"github.com/pollen-ml/pollen/tensor"
)

// TestCompileRefusesSizes: values that are valid one by one, but too large together, are an error,
// and offsets do not overflow.
func TestCompileRefusesSizes(t *testing.T) {
	const large = 1<<59 - 1
	for name, c := range map[string]struct {
		build func(b *graph.Builder)
		want  string
	}{
		"data": {func(b *graph.Builder) {
			x := b.Apply(op.ReLU{}, b.Data("x", tensor.Float32, large))
			b.Output("y", b.Apply(op.Tanh{}, x))
		}, "shape [576460752303423487] takes the program's values beyond the limit of 262144 GiB"},
		"parameters": {func(b *graph.Builder) {
			for _, name := range []string{"a", "b", "c"} {
				b.Output(name+" of", b.Apply(op.ReLU{}, b.Parameter(name, nil, 1<<33)))
			}
		}, "c: shape [8589934592] takes the parameters beyond the limit of 17179869184 elements"},
	} {
		b := graph.New(tensor.Float32)
		c.build(b)
		if _, err := b.Compile(); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}

// TestIntegersBeyond32Bits: kernels count in 32 bits, and more elements are an error.
func TestIntegersBeyond32Bits(t *testing.T) {
	for _, n := range []int{1<<31 - 1, 1 << 31} {
		for name, build := range map[string]func(b *graph.Builder, x *graph.Node) *graph.Node{
			"relu": func(b *graph.Builder, x *graph.Node) *graph.Node { return b.Apply(op.ReLU{}, x) },
			"sum":  func(b *graph.Builder, x *graph.Node) *graph.Node { return b.Apply(op.Sum{}, x) },
			"add":  func(b *graph.Builder, x *graph.Node) *graph.Node { return b.Apply(op.Add{}, x, x) },
		} {
			b := graph.New(tensor.Float32)
			end := b.Scope("large")
			b.Output("y", build(b, b.Data("x", tensor.Float32, n)))
			end()
			_, err := b.Compile()
			if n < 1<<31 {
				must(t, err)
				continue
			}
			wantError(t, name, err, "large: "+name, "at most 2147483647, got 2147483648")
		}
	}
}

// TestNoiseBeyondStream: a stream of random numbers has 2^34 of them.
func TestNoiseBeyondStream(t *testing.T) {
	for _, n := range []int{1 << 34, 1<<34 + 1} {
		b := graph.New(tensor.Float32)
		b.Apply(op.Noise{Stream: b.Stream(), As: op.ViewAs(n)}, b.Header())
		b.Apply(op.Dropout{Rate: 0.5, Stream: b.Stream()}, b.Data("x", tensor.Float32, n), b.Header())
		if refused := b.Err() != nil; refused != (n > 1<<34) {
			t.Errorf("%d elements: %v", n, b.Err())
		}
	}
}
