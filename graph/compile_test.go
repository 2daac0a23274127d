package graph_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/graph/op"
	"github.com/pollen-ml/pollen/graph/op/array"
	"github.com/pollen-ml/pollen/tensor"
)

var conv3x3 = op.Conv2D{Stride: op.Square(1), Dilation: op.Square(1)}

func TestDeadCodeIsRemoved(t *testing.T) {
	m := newCNN(tensor.Float32).train(0.1)
	b := m.builder
	b.Apply(op.Softmax{}, m.logits)
	b.Parameter("unused", nil, 1000)
	p, err := b.Compile()
	must(t, err)
	names := kernels(p)
	for kernel, want := range map[string]int{
		"conv2d_bwd_input":  1, // of the second layer: nothing reads the gradient of the images
		"conv2d_bwd_filter": 2,
		"softmax_fwd":       0,
		"descend":           6,
		"matmul_fwd":        2, // both gradients of the linear layer
	} {
		if got := count(names, kernel); got != want {
			t.Errorf("%d launches of %s, want %d, in\n%s", got, kernel, want, p.Dump())
		}
	}
	var parameters []string
	for _, w := range p.Parameters() {
		parameters = append(parameters, w.Name)
	}
	want := []string{"conv1.weight", "conv1.bias", "conv2.weight", "conv2.bias", "linear.weight", "linear.bias"}
	if !slices.Equal(parameters, want) {
		t.Errorf("parameters are %q, want %q", parameters, want)
	}
}

// A parameter that neither Gradients nor the updates include is an error, not one that never moves.
func TestLateParameter(t *testing.T) {
	for name, before := range map[string]func(b *graph.Builder, w *graph.Node){
		"gradients": func(b *graph.Builder, w *graph.Node) {
			b.Output("gradient", b.Gradients(b.Apply(op.Sum{}, b.Apply(op.Tanh{}, w)), w)[0])
		},
		"updates": func(b *graph.Builder, w *graph.Node) { b.Apply(descend{1}, w, b.State("slope", nil, 2)) },
	} {
		b := graph.New(tensor.Float64)
		before(b, b.Parameter("w", nil, 2))
		b.Output("y", b.Apply(op.Tanh{}, b.Parameter("v", nil, 2)))
		_, err := b.Compile()
		wantError(t, name, err, `parameter "v" must be made before Gradients and the first update`)
	}
}

func TestFusion(t *testing.T) {
	type parts struct{ conv, bias, relu *graph.Node }
	build := func(b *graph.Builder) parts {
		var p parts
		p.conv = b.Apply(conv3x3, b.State("x", normal(1), 2, 3, 7, 7), b.State("w", normal(1), 4, 3, 3, 3))
		p.bias = b.Apply(op.BiasAdd{}, p.conv, b.State("bias", normal(1), 4))
		p.relu = b.Apply(op.ReLU{}, p.bias)
		return p
	}
	const elements = 2 * 4 * 5 * 5
	whole := graph.New(tensor.Float64)
	whole.Output("y", build(whole).relu)
	fused := load(t, whole, newHost(t, 1), graph.LoadOptions{})
	must(t, fused.Run(1))
	y := read(t, fused, "y", 0, elements)
	if names := kernels(fused.Program()); !slices.Equal(names, []string{"conv2d_bias_fwd"}) {
		t.Errorf("launches are %q, want one", names)
	}
	if label := fused.Program().Launches()[0].Label; label != "conv2d + bias + relu" {
		t.Errorf("label is %q", label)
	}
	for _, test := range []struct {
		name string
		keep func(b *graph.Builder, p parts)
		want []string
	}{
		{"convolution kept", func(b *graph.Builder, p parts) { b.Output("conv", p.conv) }, []string{"conv2d_fwd", "bias_fwd", "relu_fwd"}},
		{"bias kept", func(b *graph.Builder, p parts) { b.Output("bias out", p.bias) }, []string{"conv2d_bias_fwd", "relu_fwd"}},
		{"bias recorded", func(b *graph.Builder, p parts) { b.Record("bias out", p.bias) }, []string{"conv2d_bias_fwd", "relu_fwd", "record_fwd"}},
		{"bias read by two", func(b *graph.Builder, p parts) { b.Output("again", b.Apply(op.ReLU{}, p.bias)) }, []string{"conv2d_bias_fwd", "relu_fwd", "relu_fwd"}},
		{"relu of relu", func(b *graph.Builder, p parts) { b.Output("again", b.Apply(op.ReLU{}, p.relu)) }, []string{"conv2d_bias_fwd", "relu_fwd"}},
	} {
		b := graph.New(tensor.Float64)
		p := build(b)
		b.Output("y", p.relu)
		test.keep(b, p)
		s := load(t, b, newHost(t, 1), graph.LoadOptions{})
		if names := kernels(s.Program()); !slices.Equal(names, test.want) {
			t.Errorf("%s: launches are %q, want %q", test.name, names, test.want)
		}
		must(t, s.Run(1))
		sameBits(t, test.name, read(t, s, "y", 0, elements), y)
	}
}

// A view between two ops keeps them apart: the shapes differ.
func TestNoFusionThroughView(t *testing.T) {
	b := graph.New(tensor.Float64)
	h := b.Apply(op.MatMul{}, b.State("a", normal(1), 4, 4), b.State("b", normal(1), 4, 4))
	b.Output("y", b.Apply(op.ReLU{}, b.Apply(op.ViewAs(16), h)))
	p, err := b.Compile()
	must(t, err)
	if names := kernels(p); !slices.Equal(names, []string{"matmul_fwd", "relu_fwd"}) {
		t.Errorf("launches are %q", names)
	}
}

// A pool's gradient does the work of the ReLU's before it, but not of one before a sum whose other
// term needs no gradient: that sum may be above 0 where the ReLU is not, and the other way round.
func TestPoolLeavesAnotherReLUsGradient(t *testing.T) {
	for _, window := range []int{2, 3} {
		for _, sum := range []bool{false, true} {
			b := graph.New(tensor.Float64)
			x := b.State("x", normal(1), 2, 3, 6, 6)
			h := b.Apply(op.ReLU{}, x)
			if sum {
				h = b.Apply(op.Add{}, h, b.State("other", constant(-1), 2, 3, 6, 6))
			}
			y := b.Apply(op.MaxPool2D{Window: op.Square(window), Stride: op.Square(window)}, h)
			dx := b.Gradients(b.Apply(op.Sum{}, b.Apply(op.Squared{}, y)), x)[0]
			b.Output("dx", dx)
			oracle, err := graph.Interpret(b, graph.LoadOptions{})
			must(t, err)
			s := load(t, b, newHost(t, 1), graph.LoadOptions{})
			must(t, s.Run(1))
			must(t, oracle.Step())
			want, err := oracle.Value(dx)
			must(t, err)
			got := read(t, s, "dx", 0, len(want))
			for i := range got {
				got[i] += 0 // makes -0 0: a negative number that is blocked may keep its sign
				want[i] += 0
			}
			sameBits(t, fmt.Sprintf("window %d, sum %v", window, sum), got, want)
			if fused := !slices.Contains(kernels(s.Program()), "relu_bwd"); fused == sum {
				t.Errorf("window %d, sum %v: launches are %q", window, sum, kernels(s.Program()))
			}
		}
	}
}

// Every read of a parameter within a step sees the value the step began with, whenever the reader
// was made.
func TestReadersSeeTheOldParameter(t *testing.T) {
	b := graph.New(tensor.Float64)
	w := b.Parameter("w", constant(3), 2)
	before := b.Apply(op.ReLU{}, w)
	b.Apply(descend{1}, w, b.State("dw", constant(1), 2))
	after := b.Apply(op.ReLU{}, w)
	through := b.Apply(op.ReLU{}, b.Apply(op.ViewAs(1, 2), b.Apply(op.ViewAs(2, 1), w)))
	b.Output("before", before)
	b.Output("through", through)
	b.Record("after", after)
	oracle, err := graph.Interpret(b, graph.LoadOptions{})
	must(t, err)
	s := load(t, b, newHost(t, 2), graph.LoadOptions{})
	for step := range 3 {
		must(t, s.Run(1))
		must(t, oracle.Step())
		want := []float64{3 - float64(step), 3 - float64(step)}
		sameBits(t, "before", read(t, s, "before", 0, 2), want)
		sameBits(t, "through", read(t, s, "through", 0, 2), want)
		sameBits(t, "after", []float64{s.Metric(0, "after", uint64(step))}, []float64{want[0] + want[1]})
		sameBits(t, "w", read(t, s, "w", 0, 2), []float64{2 - float64(step), 2 - float64(step)})
		for name, n := range map[string]*graph.Node{"before": before, "after": after, "through": through} {
			got, err := oracle.Value(n)
			must(t, err)
			sameBits(t, "interpreter: "+name, got, want)
		}
	}
}

func TestUpdateErrors(t *testing.T) {
	for _, test := range []struct {
		name  string
		build func(b *graph.Builder)
		want  []string
	}{
		{"two updates of one parameter", func(b *graph.Builder) {
			w, g := b.Parameter("w", nil, 2), b.State("g", nil, 2)
			b.Apply(descend{1}, w, g)
			b.Apply(descend{2}, w, g)
		}, []string{"descend", "update w", "already"}},
		{"updates that read what the other changes", func(b *graph.Builder) {
			v, w := b.Parameter("v", nil, 2), b.Parameter("w", nil, 2)
			b.Apply(descend{1}, v, w)
			b.Apply(descend{1}, w, v)
		}, []string{"descend", "depends on itself"}},
		{"likewise, one of them through a view", func(b *graph.Builder) {
			v, w := b.Parameter("v", nil, 4), b.Parameter("w", nil, 4)
			b.Apply(descend{1}, v, b.Apply(op.ViewAs(4), b.Apply(op.ViewAs(2, 2), w)))
			b.Apply(descend{1}, w, v)
		}, []string{"descend", "depends on itself"}},
		{"a reader of both the statistic and the parameter", func(b *graph.Builder) {
			w := b.Parameter("w", nil, 1, 1)
			statistic := b.Apply(descend{1}, w, b.State("g", nil, 1, 1))
			b.Output("y", b.Apply(op.MatMul{}, w, b.Apply(op.ViewAs(1, 1), statistic)))
		}, []string{"depends on itself"}},
		{"an update of data", func(b *graph.Builder) {
			b.Apply(descend{1}, b.Data("x", tensor.Float64, 2), b.State("g", nil, 2))
		}, []string{"must be a parameter or state", "got x"}},
		{"an update of what an op computes", func(b *graph.Builder) {
			b.Apply(descend{1}, b.Apply(op.ReLU{}, b.State("s", nil, 2)), b.State("g", nil, 2))
		}, []string{"must be a parameter or state", "got relu"}},
		{"an update of a view", func(b *graph.Builder) {
			b.Apply(descend{1}, b.Apply(op.ViewAs(2, 1), b.State("s", nil, 2)), b.State("g", nil, 2, 1))
		}, []string{"must be a parameter or state", "got view"}},
	} {
		b := graph.New(tensor.Float64)
		test.build(b)
		must(t, b.Err())
		_, err := b.Compile()
		wantError(t, test.name, err, test.want...)
	}
}

// An update that reads a parameter comes before the update that changes it, even if it was made
// later.
func TestUpdatesAreOrdered(t *testing.T) {
	b := graph.New(tensor.Float64)
	v, w := b.Parameter("v", constant(5), 4), b.Parameter("w", constant(2), 4)
	b.Apply(descend{1}, v, b.Apply(op.ReLU{}, b.Apply(op.ViewAs(4), b.Apply(op.ViewAs(2, 2), w))))
	b.Apply(descend{1}, w, v)
	s := load(t, b, newHost(t, 1), graph.LoadOptions{})
	must(t, s.Run(1))
	sameBits(t, "v", read(t, s, "v", 0, 1), []float64{3})
	sameBits(t, "w", read(t, s, "w", 0, 1), []float64{-3})
}

func TestBuilderErrors(t *testing.T) {
	for _, test := range []struct {
		name  string
		build func(b *graph.Builder)
		want  []string
	}{
		{"nothing to compute", func(b *graph.Builder) { b.Parameter("w", nil, 2) }, []string{"must have an output, a metric or an update"}},
		{"a nil input", func(b *graph.Builder) { b.Apply(op.ReLU{}, nil) }, []string{"relu", "input 0 is nil"}},
		{"an op with a slice", func(b *graph.Builder) { b.Apply(incomparable{}, b.State("x", nil, 2)) }, []string{
			"sliced: the op must be a comparable struct", "graph_test.incomparable",
		}},
		{"no name", func(b *graph.Builder) { b.State("", nil, 2) }, []string{"input: the name must not be empty"}},
		{"a name twice", func(b *graph.Builder) { b.State("x", nil, 2); b.Parameter("x", nil, 2) }, []string{`input "x": the name must be unique`}},
		{"gradients twice", func(b *graph.Builder) {
			w := b.Parameter("w", nil, 2)
			b.Gradients(b.Apply(op.Sum{}, w), w)
			b.Gradients(b.Apply(op.Sum{}, w), w)
		}, []string{"must be called only once", "it was called before"}},
		{"gradients after a metric", func(b *graph.Builder) {
			w := b.Parameter("w", nil, 2)
			loss := b.Apply(op.Sum{}, w)
			b.Record("loss", loss)
			b.Gradients(loss, w)
		}, []string{"must be called only once", `the graph has the metric "loss" already`}},
		{"no op", func(b *graph.Builder) { b.Apply(nil, b.State("x", nil, 2)) }, []string{"the op is nil"}},
		{"another builder's node", func(b *graph.Builder) {
			b.State("x", nil, 2)
			b.Apply(op.ReLU{}, graph.New(tensor.Float64).State("x", nil, 2))
		}, []string{"relu", "input 0 is a node of another builder"}},
		{"an output of another builder", func(b *graph.Builder) {
			b.Output("y", graph.New(tensor.Float64).State("x", nil, 2))
		}, []string{`output "y"`, "another builder"}},
		{"labels instead of numbers", func(b *graph.Builder) {
			b.Apply(op.SquaredError{}, b.State("x", nil, 2), b.Data("y", tensor.Int32, 2))
		}, []string{"squared error", "input 1 must be of float64, got int32"}},
		{"numbers instead of labels", func(b *graph.Builder) {
			b.Apply(op.LogProbability{}, b.State("x", nil, 2, 3), b.State("y", nil, 2))
		}, []string{"log probability", "input 1 must be of int32, got float64"}},
		{"another float", func(b *graph.Builder) {
			x := b.State("x", nil, 2)
			defer b.Within(tensor.Float32)()
			b.Apply(op.ReLU{}, x)
		}, []string{"relu", "input 0 must be of float32, got float64"}},
		{"a scope in the message", func(b *graph.Builder) {
			defer b.Scope("conv1")()
			b.Apply(conv3x3, b.State("x", nil, 1, 3, 8, 8), b.State("w", nil, 4, 1, 3, 3))
		}, []string{"graph: conv1: conv2d", "input must have the filter's 1 channels, got 3"}},
		{"bytes for floats", func(b *graph.Builder) { b.Apply(op.ReLU{}, b.Data("x", tensor.Uint8, 2)) }, []string{"relu", "input 0 must be of float64, got uint8"}},
		{"another float", func(b *graph.Builder) {
			b.Apply(op.Add{}, b.State("x", nil, 2), b.Data("y", tensor.Float32, 2))
		}, []string{"add", "input 1 must be of float64, got float32"}},
		{"an input more", func(b *graph.Builder) {
			labels := b.Data("labels", tensor.Int32, 2)
			b.Apply(op.CrossEntropy{}, b.State("x", nil, 2, 3), labels, labels)
		}, []string{"cross entropy", "inputs must be logits [B K] and labels [B]"}},
		{"a slice of steps beyond any tensor", func(b *graph.Builder) {
			b.Apply(array.Slice{Step: 1 << 62, Count: 3}, b.State("x", nil, 3))
		}, []string{"slice", "all within axis 0"}},
		{"an extent of 0", func(b *graph.Builder) { b.State("x", nil, 3, 0) }, []string{`"x"`, "axis 1 must be at least 1, got 0"}},
		{"too many elements", func(b *graph.Builder) { b.State("x", nil, 1<<40, 1<<40) }, []string{`"x"`, "too many"}},
		{"elements of no type", func(b *graph.Builder) { b.Data("x", tensor.DType(99), 3) }, []string{`"x"`, "DType(99)"}},
		{"a gradient of nothing", func(b *graph.Builder) { b.Gradients(nil, b.Parameter("w", nil, 2)) }, []string{"the loss must not be nil"}},
		{"an output of nothing", func(b *graph.Builder) { b.Output("y", nil) }, []string{`output "y"`, "nil"}},
		{"an output twice", func(b *graph.Builder) {
			x := b.State("x", nil, 2)
			b.Output("y", b.Apply(op.ReLU{}, x))
			b.Record("y", b.Apply(op.ReLU{}, x))
		}, []string{`"y"`, "already"}},
		{"a node kept twice", func(b *graph.Builder) {
			y := b.Apply(op.ReLU{}, b.State("x", nil, 2))
			b.Output("y", y)
			b.Output("z", y)
		}, []string{`"z"`, "already", `"y"`}},
		{"a metric of integers", func(b *graph.Builder) { b.Record("y", b.Data("x", tensor.Int32, 2)) }, []string{`"y"`, "int32"}},
		{"gradients twice", func(b *graph.Builder) {
			w := b.Parameter("w", nil, 2, 3)
			loss := b.Apply(op.CrossEntropy{}, w, b.Data("labels", tensor.Int32, 2))
			b.Gradients(loss, w)
			b.Gradients(loss, w)
		}, []string{"gradients", "once"}},
		{"gradients after an update", func(b *graph.Builder) {
			w := b.Parameter("w", nil, 2, 3)
			b.Apply(descend{1}, w, b.State("g", nil, 2, 3))
			b.Gradients(b.Apply(op.CrossEntropy{}, w, b.Data("labels", tensor.Int32, 2)), w)
		}, []string{"gradients", "before updates"}},
		{"gradients after a metric", func(b *graph.Builder) {
			w := b.Parameter("w", nil, 2, 3)
			loss := b.Apply(op.CrossEntropy{}, w, b.Data("labels", tensor.Int32, 2))
			b.Record("loss", loss)
			b.Gradients(loss, w)
		}, []string{"gradients", "before updates and metrics"}},
		{"gradients of a vector", func(b *graph.Builder) {
			w := b.Parameter("w", nil, 2)
			b.Gradients(b.Apply(op.ReLU{}, w), w)
		}, []string{"gradients", "[2]", "scalar"}},
		{"gradients through an op that has none", func(b *graph.Builder) {
			w := b.Parameter("w", nil, 2, 3)
			b.Gradients(b.Apply(op.CrossEntropy{}, b.Apply(op.Compare{Less: true}, w, w), b.Data("labels", tensor.Int32, 2)), w)
		}, []string{"gradients", "does not depend on w", "only through ops whose gradient is 0"}},
		{"gradients by one of two operands", func(b *graph.Builder) {
			w, v := b.Parameter("w", nil, 3), b.Parameter("v", nil, 3)
			b.Gradients(b.Apply(op.Sum{}, b.Apply(op.Multiply{}, b.Apply(op.Compare{Less: true}, w, v), v)), v, w)
		}, []string{"gradients", "does not depend on w", "only through ops whose gradient is 0"}},
		{"gradients by nothing", func(b *graph.Builder) {
			b.Gradients(b.Apply(op.Sum{}, b.Parameter("w", nil, 3)))
		}, []string{"gradients", "at least one node"}},
		{"a cast of labels", func(b *graph.Builder) { b.Cast(b.Data("labels", tensor.Int32, 3)) }, []string{"cast", "float32 or float64, got int32"}},
		{"too many streams", func(b *graph.Builder) {
			for range 1 << 16 {
				b.Stream()
			}
		}, []string{"stream", "at most 65534 streams"}},
		{"gradients past an op that has none", func(b *graph.Builder) {
			w := b.Parameter("w", nil, 3)
			rows := b.Apply(op.GatherRows{Batch: op.Batch{Size: 2}}, w, b.Header())
			b.Gradients(b.Apply(op.Add{}, b.Apply(op.Sum{}, w), b.Apply(op.Sum{}, rows)), w)
		}, []string{"gradients", "gather rows has no gradient"}},
		{"gradients of a parameter that the loss does not need", func(b *graph.Builder) {
			w := b.Parameter("w", nil, 2, 3)
			b.Gradients(b.Apply(op.CrossEntropy{}, w, b.Data("labels", tensor.Int32, 2)), w, b.Parameter("v", nil, 2))
		}, []string{"gradients"}},
	} {
		b := graph.New(tensor.Float64)
		test.build(b)
		first := b.Err()
		// The first error sticks, and what follows does nothing.
		if n := b.Apply(op.ReLU{}, b.State("later", nil, 0)); first != nil && n != nil {
			t.Errorf("%s: a node is made after the error", test.name)
		}
		if first == nil {
			b = graph.New(tensor.Float64)
			test.build(b)
		}
		_, err := b.Compile()
		wantError(t, test.name, err, append(test.want, "graph: ")...)
		if first != nil && err != first {
			t.Errorf("%s: the error is now %v, was %v", test.name, err, first)
		}
	}
	_, err := graph.New(tensor.Int32).Compile()
	wantError(t, "a graph of integers", err, "int32", "float32 or float64")
}

// A node without a gradient does no harm where the loss does not depend on it.
func TestGradientsBesideOtherNodes(t *testing.T) {
	b := graph.New(tensor.Float64)
	w := b.Parameter("w", normal(1), 2, 3)
	labels := b.Data("labels", tensor.Int32, 2)
	accuracy := b.Apply(op.Accuracy{}, w, labels)
	p := b.Apply(op.Softmax{}, w)
	b.Output("dw", b.Gradients(b.Apply(op.CrossEntropy{}, w, labels), w)[0])
	b.Output("p", p)
	b.Record("accuracy", accuracy)
	s := load(t, b, newHost(t, 1), graph.LoadOptions{})
	must(t, s.Run(1))
	p0, dw := read(t, s, "p", 0, 6), read(t, s, "dw", 0, 6)
	if got, want := dw[1], p0[1]/2; got < want-1e-15 || got > want+1e-15 {
		t.Errorf("dw[0 1] is %v, want %v", got, want)
	}
}

// A view has its input's type, whatever that is.
func TestViewOfIntegers(t *testing.T) {
	b := graph.New(tensor.Float64)
	view := b.Apply(op.ViewAs(3), b.Data("labels", tensor.Int32, 3, 1))
	if got := graph.DTypeOf(view); got != tensor.Int32 {
		t.Errorf("a view of int32 has type %v", got)
	}
	b.Record("loss", b.Apply(op.CrossEntropy{}, b.State("logits", normal(1), 3, 4), view))
	oracle, err := graph.Interpret(b, graph.LoadOptions{})
	must(t, err)
	must(t, oracle.Step())
	s := load(t, b, newHost(t, 1), graph.LoadOptions{})
	must(t, s.Run(1))
}

func TestGradientByAnotherParameter(t *testing.T) {
	b := graph.New(tensor.Float64)
	logits, unused := b.Parameter("logits", nil, 3, 2), b.Parameter("unused", nil, 4)
	loss := b.Apply(op.CrossEntropy{}, logits, b.Data("labels", tensor.Int32, 3))
	b.Gradients(loss, logits, unused)
	wantError(t, "a parameter that the loss does not depend on", b.Err(), "unused", "depend")
}

// incomparable is an op that breaks the rule that ops are comparable.
type incomparable struct{ values []float64 }

func (incomparable) Name() string                                  { return "sliced" }
func (incomparable) Shape(in []tensor.Shape) (tensor.Shape, error) { return in[0], nil }
func (i incomparable) Lower(l *graph.Lowering)                     { _ = i.values }
