package op

import (
	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/tensor"
	"github.com/pollen-ml/pollen/tensor/kernel"
	"github.com/pollen-ml/pollen/tensor/random"
)

// Dropout sets each element to 0 with probability Rate and divides the others by 1 - Rate: x [...],
// header -> y [...]. Element i is dropped if uniform number i of (seed, chain, step, Stream) is at
// most Rate. The mask is not stored: the gradient is the same op on dout, which generates the same
// numbers again. Source: Srivastava et al., Dropout (2014).
type Dropout struct {
	Rate   float64 // in [0, 1)
	Stream uint16  // a number from Builder.Stream
}

// Name implements graph.Op.
func (Dropout) Name() string { return "dropout" }

// InputType implements graph.Mixed.
func (Dropout) InputType(i int) tensor.DType { return [...]tensor.DType{1: tensor.Uint64}[i] }

// Shape implements graph.Op.
func (d Dropout) Shape(in []tensor.Shape) (tensor.Shape, error) {
	if err := checkRanks(in, -1, 1); err != nil {
		return nil, err
	}
	if !(d.Rate >= 0 && d.Rate < 1) {
		return nil, errors.Errorf("rate must be at least 0 and below 1, got %v", d.Rate)
	}
	return in[0], checkStream(d.Stream, in[0].Elements(), 1)
}

// Lower implements graph.Op.
func (d Dropout) Lower(l *graph.Lowering) {
	n := l.Shape.Elements()
	run := graph.Pick(l, dropout[float32], dropout[float64])(d)
	l.Emit("dropout_fwd", tensor.Vec4(n), tensor.Rows(n, 1, run), l.Out(), l.In(0), l.In(1),
		tensor.Int(n), tensor.Float(l.DType, d.Rate), tensor.Float(l.DType, 1/(1-d.Rate)), tensor.Uint(uint32(d.Stream)))
}

// dropout returns the loop over elements. It generates the uniform numbers of a block at a time,
// which stay in the cache until they are compared with the rate.
func dropout[T float32 | float64](d Dropout) func(a *tensor.Args, lo, hi int) {
	rate, scale := float32(d.Rate), T(1/(1-d.Rate))
	return func(a *tensor.Args, lo, hi int) {
		y, x, header := tensor.Slice[T](a, 0), tensor.Slice[T](a, 1), tensor.Slice[uint64](a, 2)
		address := AddressOf(header, d.Stream)
		var uniforms [random.BlockSize]float32
		for from := lo; from < hi; from += random.BlockSize {
			to := min(hi, from+random.BlockSize)
			random.Uniforms(uniforms[:to-from], from, address)
			kernel.Keep(y[from:to], x[from:to], uniforms[:], rate, scale)
		}
	}
}

// Gradients implements graph.Differentiable: the same mask over dout.
func (d Dropout) Gradients(b *graph.Builder, in []*graph.Node, _, dout *graph.Node) []*graph.Node {
	return []*graph.Node{b.Apply(d, dout, in[1]), nil}
}
