package op

import (
	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/tensor"
	"github.com/pollen-ml/pollen/tensor/random"
)

// NoiseKind is the distribution of noise.
type NoiseKind uint8

// The kinds are standard normal, and uniform on (0, 1].
const (
	NormalNoise NoiseKind = iota
	UniformNoise
)

// Noise is independent random numbers of the shape As, different in each chain and step:
// header -> y [...]. Stream is a number from Builder.Stream. It has no gradient, since it depends
// only on the header.
type Noise struct {
	Kind   NoiseKind
	Stream uint16
	As     View
}

// Name implements graph.Op.
func (Noise) Name() string { return "noise" }

// InputType implements graph.Mixed.
func (Noise) InputType(int) tensor.DType { return tensor.Uint64 }

// Shape implements graph.Op.
func (n Noise) Shape(in []tensor.Shape) (tensor.Shape, error) {
	if err := checkRanks(in, 1); err != nil {
		return nil, err
	}
	if n.Kind > UniformNoise {
		return nil, errors.Errorf("kind must be normal or uniform noise, got %d", n.Kind)
	}
	shape := n.As.shape()
	if err := shape.Validate(); err != nil {
		return nil, err
	}
	return shape, checkStream(n.Stream, shape.Elements(), 1)
}

// Lower implements graph.Op. The kernels are noise_normal_fwd and noise_uniform_fwd.
func (n Noise) Lower(l *graph.Lowering) {
	stem, run := "noise_normal_fwd", graph.Pick(l, normalNoise[float32], normalNoise[float64])
	if n.Kind == UniformNoise {
		stem, run = "noise_uniform_fwd", graph.Pick(l, uniformNoise[float32], uniformNoise[float64])
	}
	count := l.Shape.Elements()
	l.Emit(stem, tensor.Vec4(count), tensor.Rows(count, 1, run(n.Stream)), l.Out(), l.In(0), tensor.Int(count), tensor.Uint(uint32(n.Stream)))
}

func normalNoise[T float32 | float64](stream uint16) func(a *tensor.Args, lo, hi int) {
	return func(a *tensor.Args, lo, hi int) {
		random.Normals(tensor.Slice[T](a, 0)[lo:hi], lo, AddressOf(tensor.Slice[uint64](a, 1), stream))
	}
}

func uniformNoise[T float32 | float64](stream uint16) func(a *tensor.Args, lo, hi int) {
	return func(a *tensor.Args, lo, hi int) {
		random.Uniforms(tensor.Slice[T](a, 0)[lo:hi], lo, AddressOf(tensor.Slice[uint64](a, 1), stream))
	}
}
