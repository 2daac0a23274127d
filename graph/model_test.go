package graph_test

import (
	"flag"
	"math"
	"strings"
	"testing"

	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/graph/op"
	"github.com/pollen-ml/pollen/tensor"
	"github.com/pollen-ml/pollen/tensor/random"
)

var updateGolden = flag.Bool("update", false, "write the golden files again")

// normal returns an initializer that draws from N(0, std^2).
func normal(std float64) graph.Initializer {
	return func(seed uint64, chain uint32, stream uint16, _ tensor.Shape, values []float64) {
		random.Normals(values, 0, random.Address{Seed: seed, Chain: chain, Stream: stream})
		for i := range values {
			values[i] *= std
		}
	}
}

// constant returns an initializer that sets all elements to v.
func constant(v float64) graph.Initializer {
	return func(_ uint64, _ uint32, _ uint16, _ tensor.Shape, values []float64) {
		for i := range values {
			values[i] = v
		}
	}
}

// descend is w <- w - rate dw; its output is the sum of w dw before the update: w, dw -> a scalar.
type descend struct{ rate float64 }

func (descend) Name() string                               { return "descend" }
func (descend) Updates() []int                             { return []int{0} }
func (descend) Shape([]tensor.Shape) (tensor.Shape, error) { return tensor.Shape{}, nil }

func (d descend) Lower(l *graph.Lowering) {
	run := graph.Pick(l, descendIn[float32](d.rate), descendIn[float64](d.rate))
	n := l.Shapes[0].Elements()
	l.Emit("descend", tensor.Threads(n), tensor.Single(run), l.Out(), l.InOut(0), l.In(1), tensor.Int(n), tensor.Float(l.DType, d.rate))
}

func descendIn[T float32 | float64](rate float64) func(a *tensor.Args) {
	return func(a *tensor.Args) {
		w, dw := tensor.Slice[T](a, 1), tensor.Slice[T](a, 2)
		statistic := T(0)
		for i, g := range dw {
			statistic += w[i] * g
			w[i] -= T(rate) * g
		}
		tensor.Slice[T](a, 0)[0] = statistic
	}
}

// noise is y = x + normals of its stream: x, header -> y of x's shape.
type noise struct{ stream uint16 }

func (noise) Name() string                                  { return "noise" }
func (noise) Shape(in []tensor.Shape) (tensor.Shape, error) { return in[0], nil }

func (n noise) Lower(l *graph.Lowering) {
	l.Emit("noise_fwd", tensor.Threads(l.Shape.Elements()), tensor.Single(graph.Pick(l, noiseIn[float32](n.stream), noiseIn[float64](n.stream))),
		l.Out(), l.In(0), l.In(1), tensor.Uint(uint32(n.stream)))
}

func noiseIn[T float32 | float64](stream uint16) func(a *tensor.Args) {
	return func(a *tensor.Args) {
		y, x := tensor.Slice[T](a, 0), tensor.Slice[T](a, 1)
		random.Normals(y, 0, op.AddressOf(tensor.Slice[uint64](a, 2), stream))
		for i, v := range x {
			y[i] += v
		}
	}
}

// Gradients implements graph.Differentiable.
func (noise) Gradients(_ *graph.Builder, _ []*graph.Node, _, dout *graph.Node) []*graph.Node {
	return []*graph.Node{dout, nil}
}

// cnn is a small network in training, on a data set of bytes.
type cnn struct {
	builder      *graph.Builder
	logits, loss *graph.Node
	gradients    []*graph.Node
	pixels       []byte
	labels       []int32
}

const (
	cnnExamples = 53
	cnnPixels   = 2 * 9 * 9
	cnnClasses  = 5
)

// newCNN builds two convolutions and a linear layer, with their gradients. Nothing is kept yet.
func newCNN(dtype tensor.DType) *cnn {
	b := graph.New(dtype)
	m := &cnn{builder: b}
	batch := op.Batch{Size: 8, Order: op.Shuffled}
	gather := op.GatherImages{Batch: batch, Mean: op.ChannelsOf(0.5), Std: op.ChannelsOf(0.25)}
	x := b.Apply(gather, b.Data("images", tensor.Uint8, cnnExamples, 2, 9, 9), b.Header())
	labels := b.Apply(op.GatherLabels{Batch: batch}, b.Data("labels", tensor.Int32, cnnExamples), b.Header())
	m.logits = cnnLogits(b, x)
	m.loss = b.Apply(op.CrossEntropy{}, m.logits, labels)
	m.gradients = b.Gradients(m.loss, b.Parameters()...)
	for i := range cnnExamples * cnnPixels {
		m.pixels = append(m.pixels, byte(i*37+i/cnnPixels*11))
	}
	for i := range cnnExamples {
		m.labels = append(m.labels, int32(i*i%cnnClasses))
	}
	return m
}

func cnnLogits(b *graph.Builder, x *graph.Node) *graph.Node {
	end := b.Scope("conv1")
	h := b.Apply(op.Conv2D{Stride: op.Square(1), Padding: op.Square(1), Dilation: op.Square(1)}, x, b.Parameter("conv1.weight", normal(.3), 4, 2, 3, 3))
	h = b.Apply(op.ReLU{}, b.Apply(op.BiasAdd{}, h, b.Parameter("conv1.bias", normal(.1), 4)))
	h = b.Apply(op.MaxPool2D{Window: op.Square(2), Stride: op.Square(2)}, h)
	end()
	end = b.Scope("conv2")
	h = b.Apply(op.Conv2D{Stride: op.Square(1), Dilation: op.Square(1)}, h, b.Parameter("conv2.weight", normal(.3), 3, 4, 3, 3))
	h = b.Apply(op.ReLU{}, b.Apply(op.BiasAdd{}, h, b.Parameter("conv2.bias", normal(.1), 3)))
	end()
	defer b.Scope("linear")()
	h = b.Apply(op.Flatten(h), h)
	h = b.Apply(op.MatMul{TransposeB: true}, h, b.Parameter("linear.weight", normal(.3), cnnClasses, 12))
	return b.Apply(op.BiasAdd{}, h, b.Parameter("linear.bias", nil, cnnClasses))
}

// train attaches an update to every parameter and records the loss and a metric made after the
// updates.
func (m *cnn) train(rate float64) *cnn {
	for i, w := range m.builder.Parameters() {
		m.builder.Apply(descend{rate}, w, m.gradients[i])
	}
	m.builder.Record("loss", m.loss)
	return m
}

// load compiles the network and fills its data set.
func (m *cnn) load(t *testing.T, device tensor.Device, o graph.LoadOptions) *graph.Session {
	t.Helper()
	s := load(t, m.builder, device, o)
	must(t, graph.Write(s, "images", 0, 0, m.pixels))
	must(t, graph.Write(s, "labels", 0, 0, m.labels))
	return s
}

// interpret prepares the interpreter and fills its data set.
func (m *cnn) interpret(t *testing.T, o graph.LoadOptions) *graph.Interpreter {
	t.Helper()
	p, err := graph.Interpret(m.builder, o)
	must(t, err)
	fill(t, p, "images", m.pixels)
	fill(t, p, "labels", m.labels)
	return p
}

// fill sets an input of an interpreter.
func fill[T tensor.Element](t *testing.T, p *graph.Interpreter, name string, values []T) {
	t.Helper()
	d, err := p.Input(name)
	must(t, err)
	if n := copy(d.Data().([]T), values); n != len(values) {
		t.Fatalf("input %q takes %d of %d values", name, n, len(values))
	}
}

// load compiles a graph and puts it on a device until the test ends.
func load(t testing.TB, b *graph.Builder, device tensor.Device, o graph.LoadOptions) *graph.Session {
	t.Helper()
	p, err := b.Compile()
	must(t, err)
	s, err := p.Load(device, o)
	must(t, err)
	t.Cleanup(func() { must(t, s.Close()) })
	return s
}

// newHost returns a host device that is closed when the test ends.
func newHost(t testing.TB, threads int) *tensor.Host {
	host := tensor.NewHost(threads)
	t.Cleanup(func() { must(t, host.Close()) })
	return host
}

// read returns all values of a float64 program's input or output.
func read(t testing.TB, s *graph.Session, name string, chain, n int) []float64 {
	t.Helper()
	values := make([]float64, n)
	must(t, graph.Read(s, name, chain, 0, values))
	return values
}

// kernels returns the kernels of a program's launches, without the type.
func kernels(p *graph.Program) []string {
	var names []string
	for _, l := range p.Launches() {
		names = append(names, strings.TrimSuffix(l.Kernel, "_"+p.DType().Suffix()))
	}
	return names
}

func count(names []string, name string) int {
	n := 0
	for _, other := range names {
		if other == name {
			n++
		}
	}
	return n
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// wantError checks that the text of err contains each of parts.
func wantError(t testing.TB, what string, err error, parts ...string) {
	t.Helper()
	if err == nil {
		t.Errorf("%s: got no error, want one with %q", what, parts)
		return
	}
	for _, part := range parts {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("%s: got %q, want an error with %q", what, err, part)
		}
	}
}

// sameBits compares numbers bit for bit.
func sameBits(t testing.TB, what string, got, want []float64) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%s: got %d numbers, want %d", what, len(got), len(want))
	}
	for i := range want {
		if math.Float64bits(got[i]) != math.Float64bits(want[i]) {
			t.Fatalf("%s: element %d: got %v, want the bits of %v", what, i, got[i], want[i])
		}
	}
}
