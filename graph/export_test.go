package graph

import (
	"gorgonia.org/gorgonia"

	"github.com/pollen-ml/pollen/tensor"
)

// ExprGraph is Gorgonia's side of the graph.
func (b *Builder) ExprGraph() *gorgonia.ExprGraph { return b.graph }

// SetSerial makes the next application take serial number n+1.
func (b *Builder) SetSerial(n uint64) { b.serial = n }

// Launches returns the program's launches.
func (p *Program) Launches() []tensor.Launch { return p.launches }

// Inputs returns the program's inputs.
func (p *Program) Inputs() []Tensor {
	var list []Tensor
	for _, in := range p.inputs {
		list = append(list, in.Tensor)
	}
	return list
}

// Buffer returns the buffer of a named input or output.
func (p *Program) Buffer(name string) *tensor.Buffer {
	t, err := p.Tensor(name)
	if err != nil {
		panic(err)
	}
	return t.buffer
}

// Steps returns the number of steps that an interpreter's header has counted.
func (p *Interpreter) Steps() uint64 {
	return p.inputs[p.builder.header].Data().([]uint64)[HeaderStep]
}

// IsSumOf reports what Gradients checks for each node: whether a gradient is the sum of its terms.
func (b *Builder) IsSumOf(gradient *Node, list ...*Node) bool {
	t := terms{}
	for _, term := range list {
		t.add(gradient, term)
	}
	return t.sumTo(b.graph, gradient, gradient)
}
