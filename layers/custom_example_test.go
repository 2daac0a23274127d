package layers_test

import (
	"fmt"
	"math"

	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/graph/op"
	"github.com/pollen-ml/pollen/layers"
	"github.com/pollen-ml/pollen/tensor"
)

// Wave is the layer y = x + w sin(x), with a parameter w that starts at 0.
type Wave struct {
	Name string // by default "wave" and a number
}

// Apply implements layers.Layer: it names the parameter after the layer, and opens a scope, so that
// errors name the layer.
func (w Wave) Apply(b *graph.Builder, x *graph.Node) *graph.Node {
	if w.Name == "" {
		w.Name = fmt.Sprint("wave", b.Number("wave"))
	}
	defer b.Scope(w.Name)()
	weight := b.Parameter(w.Name+".weight", nil, 1)
	return b.Apply(op.Add{}, x, b.Apply(op.Multiply{}, b.Apply(Sine{}, x), weight))
}

// Sine is the op y = sin(x + Phase), elementwise: x [...] -> y [...]. It has no kernel for GPUs: the
// loop runs on the host. Its fields must be comparable.
type Sine struct{ Phase float64 }

func (Sine) Name() string { return "sine" }

func (Sine) Shape(in []tensor.Shape) (tensor.Shape, error) {
	if len(in) != 1 {
		return nil, fmt.Errorf("must have 1 input, got %d", len(in))
	}
	return in[0], nil
}

// Lower emits the loop. The device cuts the n elements into tiles and calls it from several threads.
func (s Sine) Lower(l *graph.Lowering) {
	n := l.Shape.Elements()
	loop := graph.Pick(l, sines[float32](s.Phase), sines[float64](s.Phase))
	l.Emit("sine_fwd", tensor.Threads(n), tensor.RowTiles(n, 1, 1, loop), l.Out(), l.In(0))
}

// sines returns the loop. Arguments 0 and 1 are the output and the input, as in Emit.
func sines[T float32 | float64](phase float64) func(a *tensor.Args, lo, hi int) {
	return func(a *tensor.Args, lo, hi int) {
		y, x := tensor.Slice[T](a, 0), tensor.Slice[T](a, 1)
		for i := lo; i < hi; i++ {
			y[i] = T(math.Sin(float64(x[i]) + phase))
		}
	}
}

// Gradients implements graph.Differentiable by other ops: dx = dout cos(x + Phase).
func (s Sine) Gradients(b *graph.Builder, in []*graph.Node, _, dout *graph.Node) []*graph.Node {
	return []*graph.Node{b.Apply(op.Multiply{}, dout, b.Apply(Sine{s.Phase + math.Pi/2}, in[0]))}
}

// A custom layer, which applies a custom op, in a network with other layers. To train it by package
// bayes, give the network a name with bayes.RegisterNetwork. Package optest tests ops.
func ExampleLayer() {
	network := layers.Sequential{layers.Flatten{}, layers.Linear{Outputs: 8}, Wave{}, layers.Linear{Outputs: 2}}
	fmt.Println(layers.Check(network, tensor.Shape{1, 4, 4}, 2))

	b := graph.New(tensor.Float64)
	x := b.Data("x", tensor.Float64, 3)
	loss := b.Apply(op.Sum{}, Wave{}.Apply(b, x))
	gradients := b.Gradients(loss, b.Parameters()...)
	b.Output("gradient", gradients[0])
	err := b.OnHost(graph.LoadOptions{}, func(s *graph.Session) error {
		if err := graph.Write(s, "x", 0, 0, []float64{0, math.Pi / 2, math.Pi / 6}); err != nil {
			return err
		}
		if err := s.Evaluate(); err != nil {
			return err
		}
		var gradient [1]float64
		if err := graph.Read(s, "gradient", 0, 0, gradient[:]); err != nil {
			return err
		}
		fmt.Printf("d loss/d w = sin 0 + sin 90° + sin 30° = %.2f\n", gradient[0])
		return nil
	})
	if err != nil {
		fmt.Println(err)
	}
	// Output:
	// <nil>
	// d loss/d w = sin 0 + sin 90° + sin 30° = 1.50
}
