package layers

import (
	"math"

	"github.com/pollen-ml/pollen/tensor"
	"github.com/pollen-ml/pollen/tensor/random"
)

// Initializer is a distribution of a parameter's initial values, a comparable struct. Fill is a
// graph.Initializer: it draws the values of a parameter [O I ...] from step 0 of the parameter's
// stream, so that they depend only on its arguments. The fan-in of a parameter is the number of
// inputs of one output, I times the kernel's elements; the fan-out is O times the kernel's
// elements.
type Initializer interface {
	Fill(seed uint64, chain uint32, stream uint16, shape tensor.Shape, values []float64)
}

// fans returns the fan-in and the fan-out of a parameter. A vector counts as the weights of one
// output.
func fans(shape tensor.Shape) (in, out int) {
	if len(shape) < 2 {
		return shape.Elements(), 1
	}
	return shape[1:].Elements(), shape[0] * shape[2:].Elements()
}

// fillNormal draws from N(0, std^2).
func fillNormal(seed uint64, chain uint32, stream uint16, values []float64, std float64) {
	random.Normals(values, 0, random.Address{Seed: seed, Chain: chain, Stream: stream})
	for i := range values {
		values[i] *= std
	}
}

// He is N(0, 2/fan-in), which keeps the variance through layers followed by a ReLU. Source: He et
// al., Delving deep into rectifiers (2015), equation 10.
type He struct{}

// Fill implements Initializer.
func (He) Fill(seed uint64, chain uint32, stream uint16, shape tensor.Shape, values []float64) {
	in, _ := fans(shape)
	fillNormal(seed, chain, stream, values, math.Sqrt(2/float64(in)))
}

// LeCun is N(0, 1/fan-in). Source: LeCun et al., Efficient backprop (1998), section 4.6.
type LeCun struct{}

// Fill implements Initializer.
func (LeCun) Fill(seed uint64, chain uint32, stream uint16, shape tensor.Shape, values []float64) {
	in, _ := fans(shape)
	fillNormal(seed, chain, stream, values, math.Sqrt(1/float64(in)))
}

// Glorot is N(0, v) with the variance v = 2/(fan-in + fan-out), or uniform on [-a, a] with the same
// variance, a = sqrt(6/(fan-in + fan-out)). Source: Glorot and Bengio, Understanding the difficulty
// of training deep feedforward neural networks (2010), equations 12 and 16.
type Glorot struct {
	Uniform bool
}

// Fill implements Initializer.
func (g Glorot) Fill(seed uint64, chain uint32, stream uint16, shape tensor.Shape, values []float64) {
	in, out := fans(shape)
	if !g.Uniform {
		fillNormal(seed, chain, stream, values, math.Sqrt(2/float64(in+out)))
		return
	}
	random.Uniforms(values, 0, random.Address{Seed: seed, Chain: chain, Stream: stream})
	bound := math.Sqrt(6 / float64(in+out))
	for i, u := range values {
		values[i] = bound * (2*u - 1)
	}
}

// Normal is N(0, Std^2); Normal{} is zeros.
type Normal struct {
	Std float64
}

// Fill implements Initializer.
func (n Normal) Fill(seed uint64, chain uint32, stream uint16, _ tensor.Shape, values []float64) {
	fillNormal(seed, chain, stream, values, n.Std)
}

func (n Normal) limits() []limit { return []limit{atLeast("Std", n.Std, 0)} }

// Constant sets all elements to Value; Constant{} is zeros.
type Constant struct {
	Value float64
}

// Fill implements Initializer.
func (c Constant) Fill(_ uint64, _ uint32, _ uint16, _ tensor.Shape, values []float64) {
	for i := range values {
		values[i] = c.Value
	}
}
