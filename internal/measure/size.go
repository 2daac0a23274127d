package measure

import (
	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/graph/op"
	"github.com/pollen-ml/pollen/tensor"
	"github.com/pollen-ml/pollen/tensor/kernel"
)

// Bytes is the memory of a measurement: of sessions, and of Go's heap.
type Bytes struct {
	Session tensor.Footprint
	Heap    int
}

// The traces of each chain: of the loss and of the watched weight.
const tracesEach = 2

// TracesSize returns the bytes of the traces of the given number of chains when they are full,
// including the traces of held-out images.
func TracesSize(chains, images int) int {
	const value, twice = 8, 2 // a slice that grows has up to twice its values
	return value * twice * (traceValues + chains*(tracesEach*traceValues+images*heldOutValues))
}

// NoiseSize returns the memory of GradientNoise.
func NoiseSize(device tensor.Device, s Subject) (Bytes, error) {
	n := min(noiseBatches*s.Batch, len(s.Labels))
	program, err := lossProgram(s, n, op.Batch{Size: s.Batch, Order: op.Shuffled})
	if err != nil {
		return Bytes{}, err
	}
	var b Bytes
	if err := b.add(device, program); err != nil {
		return Bytes{}, err
	}
	// The state; sums, squares and step sizes in float64; a gradient.
	weights, largest := sizes(program.Parameters())
	b.Heap += 2*n*s.Images.Bytes(1) + (4+8+8+8)*weights + 4*largest
	return b, nil
}

// PredictionSize returns the memory of PredictionTemperature.
func PredictionSize(device tensor.Device, s Subject) (Bytes, error) {
	s = s.deterministic()
	steps, batch := fieldSteps(len(s.Labels))
	loss, err := lossProgram(s, steps*batch, op.Batch{Size: batch})
	if err != nil {
		return Bytes{}, err
	}
	prior, err := priorProgram(s, loss.Parameters())
	if err != nil {
		return Bytes{}, err
	}
	var b Bytes
	for _, program := range []*graph.Program{loss, prior} {
		if err := b.add(device, program); err != nil {
			return Bytes{}, err
		}
	}
	// A sample, the bytes of its file, the point next to it; two gradients in float64; a gradient.
	weights, largest := sizes(loss.Parameters())
	b.Heap += 2*4*steps*batch*s.Classes + (4+4+4+8+8)*weights + 4*largest
	b.Heap += 8 * weights // the prior's gradient, in float64
	// By determination: the columns of R, three squares of them, a block in float64; both fields.
	if rank := rankOf(weights, steps); rank > 0 {
		b.Heap += 4*rank*weights + 3*8*rank*rank + 8*kernel.GramScratch(rank) + 2*8*weights
	}
	return b, nil
}

// add adds a session of one chain.
func (b *Bytes) add(device tensor.Device, program *graph.Program) error {
	size, initial, err := program.Size(device, 1)
	b.Session.Host += size.Host
	b.Session.Device += size.Device
	b.Heap += initial
	return err
}

// sizes returns the number of values of all parameters and of the largest.
func sizes(parameters []graph.Tensor) (all, largest int) {
	for _, p := range parameters {
		all += p.Shape.Elements()
		largest = max(largest, p.Shape.Elements())
	}
	return all, largest
}
