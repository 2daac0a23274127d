package llc

import (
	"math"
	"slices"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/graph/op"
	"github.com/pollen-ml/pollen/samples"
	"github.com/pollen-ml/pollen/tensor"
)

// Model is a network, its data, and the point w* at which its learning coefficient is estimated.
type Model struct {
	// DataSize is the number N of examples.
	DataSize int
	// Losses adds the network to a graph, and returns the negative log-likelihoods [B] of the
	// examples that batch selects in a step. It creates its parameters with b.Parameter, and must
	// not draw random numbers.
	Losses func(b *graph.Builder, batch op.Batch) *graph.Node
	// Write writes the data into a session of a program with Losses.
	Write func(s *graph.Session) error
	// Centre is w*: the values of all parameters, matched by name.
	Centre []samples.Parameter
}

// The names of the inputs that a program has for the centre.
const (
	centreSuffix  = ".centre"
	baselineInput = "losses at the centre"
)

// Weights returns the number of parameters.
func (m Model) Weights() (n int) {
	for _, p := range m.Centre {
		n += len(p.Values)
	}
	return n
}

// norm returns the norm of w*.
func (m Model) norm() float64 {
	squares := 0.0
	for _, p := range m.Centre {
		for _, v := range p.Values {
			squares += float64(v) * float64(v)
		}
	}
	return math.Sqrt(squares)
}

// at returns the values of a parameter at the centre, nil if the centre has none of this name and
// shape.
func (m Model) at(name string, shape tensor.Shape) []float32 {
	for _, p := range m.Centre {
		if p.Name == name && p.Shape.Equal(shape) {
			return p.Values
		}
	}
	return nil
}

// validate reports a model that is not complete.
func (m Model) validate() error {
	switch {
	case m.DataSize < 2:
		return errors.Errorf("llc: model: DataSize must be at least 2, got %d", m.DataSize)
	case m.Losses == nil || m.Write == nil:
		return errors.New("llc: model: Losses and Write must not be nil")
	case len(m.Centre) == 0:
		return errors.New("llc: model: the centre must have the values of the parameters, got none")
	}
	for _, p := range m.Centre {
		for _, v := range p.Values {
			if v-v != 0 {
				return errors.Errorf("llc: model: the centre must be finite, got %v in %s", v, p.Name)
			}
		}
	}
	return nil
}

// losses adds the network with its parameters replaced by w* plus an offset. The offsets are the
// parameters of the graph. They begin at 0 and have the parameters' names.
func (m Model) losses(b *graph.Builder, batch op.Batch) *graph.Node {
	outer := b.Hooks
	b.Hooks.Parameter = func(name string, _ graph.Initializer, shape ...int) *graph.Node {
		if m.at(name, shape) == nil {
			b.Fail(errors.Errorf("llc: the centre must have a parameter %s of shape %v", name, shape))
			return nil
		}
		offset := b.Parameter(name, nil, shape...)
		return b.Apply(op.Add{}, offset, b.Data(name+centreSuffix, graph.DTypeOf(offset), shape...))
	}
	streams := b.Stream()
	losses := m.Losses(b, batch)
	b.Hooks = outer
	// A layer that only training needs, such as dropout, takes a stream without drawing from it.
	if taken := int(b.Stream()-streams) - 1 - len(b.Parameters()); taken > 0 && b.Err() == nil {
		if drawn := drawing(b); drawn > 0 {
			b.Fail(errors.Errorf("llc: Losses must not draw random numbers, which it does in %d places", drawn))
		}
	}
	return losses
}

// drawing returns how many ops of the graph may draw random numbers: those that read the header,
// except for ops that only gather the minibatch.
func drawing(b *graph.Builder) (count int) {
	for _, a := range b.Applications() {
		switch a.Op.(type) {
		case op.GatherImages, op.GatherLabels, op.GatherRows:
			continue
		}
		if slices.Contains(a.Inputs, b.Header()) {
			count++
		}
	}
	return count
}

// load loads a program with losses.
func (m Model) load(device tensor.Device, b *graph.Builder, o graph.LoadOptions) (*graph.Session, error) {
	program, err := b.Compile()
	if err != nil {
		return nil, err
	}
	s, err := program.Load(device, o)
	if err != nil {
		return nil, err
	}
	err = m.Write(s)
	for _, p := range program.Parameters() {
		if err == nil {
			err = graph.Write(s, p.Name+centreSuffix, 0, 0, m.at(p.Name, p.Shape))
		}
	}
	if err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

// evaluationBatch is the number of examples whose losses are evaluated together.
const evaluationBatch = 500

// lossesAt returns the losses of all examples at an offset from the centre. A nil offset is the
// centre itself.
func (m Model) lossesAt(device tensor.Device, offset []samples.Parameter) ([]float32, error) {
	b := graph.New(tensor.Float32)
	batch := op.Batch{Size: min(m.DataSize, evaluationBatch)}
	b.Output("losses", m.losses(b, batch))
	s, err := m.load(device, b, graph.LoadOptions{})
	if err != nil {
		return nil, err
	}
	defer s.Close()
	for _, p := range offset {
		if err := s.WriteFloats(p.Name, 0, p.Values); err != nil {
			return nil, err
		}
	}
	var all []float32
	for len(all) < m.DataSize {
		if err := s.Run(1); err != nil {
			return nil, err
		}
		losses := make([]float32, batch.Size)
		if err := s.ReadFloats("losses", 0, losses); err != nil {
			return nil, err
		}
		all = append(all, losses...) // the last step may continue with the first examples
	}
	return all[:m.DataSize], nil
}

// mean returns the mean of losses, summed in float64.
func mean(losses []float32) float64 {
	sum := 0.0
	for _, v := range losses {
		sum += float64(v)
	}
	return sum / float64(len(losses))
}

// moved returns the model with the centre moved by an offset.
func (m Model) moved(offset []samples.Parameter) Model {
	other := m
	other.Centre = nil
	for _, p := range offset {
		at, values := m.at(p.Name, p.Shape), make([]float32, len(p.Values))
		for i, v := range p.Values {
			values[i] = at[i] + v
		}
		other.Centre = append(other.Centre, samples.Parameter{Name: p.Name, Shape: p.Shape, Values: values})
	}
	return other
}
