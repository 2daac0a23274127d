package graph

import (
	"fmt"
	"slices"
	"strings"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/tensor"
)

// Program is a compiled graph: the launches of one step over a static memory plan. It owns no
// device memory and is immutable: any number of sessions, on any devices, may run it.
type Program struct {
	dtype    tensor.DType
	launches []tensor.Launch // of one step, in order
	bytes    [3]int          // of each arena, by tensor.Arena
	inputs   []*programInput
	outputs  []Tensor
	metrics  []string
	columns  map[string]int // the columns of the metrics in the ring, by name
	updates  bool           // it has updates, so that only Run may execute it
	ring     *tensor.Buffer // [MetricRows, metrics]; nil without metrics
	header   *tensor.Buffer // nil if no op needs seed, chain or step
}

// Tensor is a named input or output of a program.
type Tensor struct {
	Name  string
	Shape tensor.Shape
	DType tensor.DType

	buffer *tensor.Buffer
}

type programInput struct {
	Tensor
	parameter  bool
	stream     uint16
	initialize Initializer
	values     []float64
}

func (p *Program) addInput(v *value) {
	in := v.source
	p.inputs = append(p.inputs, &programInput{
		Tensor:    Tensor{Name: in.name, Shape: v.shape, DType: v.dtype, buffer: v.buffer},
		parameter: in.parameter, stream: in.stream, initialize: in.initialize, values: in.values,
	})
}

// DType returns the float of the program's parameters and metrics.
func (p *Program) DType() tensor.DType { return p.dtype }

// Parameters returns the trainable inputs, in order of creation. Parameters that no output, metric
// or update depends on are not in the program.
func (p *Program) Parameters() []Tensor {
	var list []Tensor
	for _, in := range p.inputs {
		if in.parameter {
			list = append(list, in.Tensor)
		}
	}
	return list
}

// Metrics returns the names of the recorded scalars, in order.
func (p *Program) Metrics() []string { return p.metrics }

// Bytes returns the size of one copy of each arena: shared by all chains, kept by each chain from
// step to step, and needed by each chain while it runs. A session of C chains keeps shared + C
// chain bytes, and scratch for each chain that runs at the same time.
func (p *Program) Bytes() (shared, chain, scratch int) {
	return p.bytes[tensor.Shared], p.bytes[tensor.Chain], p.bytes[tensor.Scratch]
}

// workload describes the program with the given number of chains to a device.
func (p *Program) workload(chains int) tensor.Workload {
	return tensor.Workload{Launches: p.launches, Bytes: p.bytes, Chains: chains, Header: p.header, Keeps: p.ring != nil}
}

// Size returns the memory that Load takes on a device for a number of chains. initial is the part
// of the host's memory that is free again when Load returns.
func (p *Program) Size(device tensor.Device, chains int) (size tensor.Footprint, initial int, err error) {
	size, err = tensor.SizeOn(device, p.workload(chains))
	if p.ring != nil {
		size.Host += 8*chains*p.ring.Elements + p.ring.Bytes()
	}
	initial = 8 * p.initialValues()
	for _, in := range p.inputs {
		size.Host += 8 * len(in.values)
	}
	return size, initial, errors.Wrap(err, "graph: size")
}

// holdsFloat32 reports whether the input or output called name is of float32.
func (p *Program) holdsFloat32(name string) bool {
	t, err := p.Tensor(name)
	return err == nil && t.DType == tensor.Float32
}

// Tensor returns the input or output called name. An unknown name is an error that lists all.
func (p *Program) Tensor(name string) (Tensor, error) {
	for _, in := range p.inputs {
		if in.Name == name {
			return in.Tensor, nil
		}
	}
	for _, out := range p.outputs {
		if out.Name == name {
			return out, nil
		}
	}
	var have []string
	for _, in := range p.inputs {
		have = append(have, in.Name)
	}
	for _, out := range p.outputs {
		have = append(have, out.Name)
	}
	return Tensor{}, errors.Errorf("graph: no input or output %q; there are %q", name, have)
}

func (p *Program) isInput(name string) bool {
	return slices.ContainsFunc(p.inputs, func(in *programInput) bool { return in.Name == name })
}

func (p *Program) isOutput(name string) bool {
	return slices.ContainsFunc(p.outputs, func(out Tensor) bool { return out.Name == name })
}

// Dump returns the program as text: the sizes of the arenas, inputs and outputs with their offsets,
// and the launches with their grids on a GPU and their arguments. A written argument begins with
// "=", an updated one with "~".
func (p *Program) Dump() string {
	var s strings.Builder
	shared, chain, scratch := p.Bytes()
	fmt.Fprintf(&s, "program %s: %d launches; bytes: shared %d, chain %d, scratch %d\n", p.dtype, len(p.launches), shared, chain, scratch)
	for _, in := range p.inputs {
		fmt.Fprintf(&s, "  input   %-24s %-9s %-18v %s+%d\n", in.Name, in.DType, in.Shape, in.buffer.Arena, in.buffer.Offset)
	}
	for _, out := range p.outputs {
		fmt.Fprintf(&s, "  output  %-24s %-9s %-18v %s+%d\n", out.Name, out.DType, out.Shape, out.buffer.Arena, out.buffer.Offset)
	}
	for i := range p.launches {
		l := &p.launches[i]
		fmt.Fprintf(&s, "  %3d %-28s %-22s", i, l.Kernel, grids(l))
		for _, argument := range l.Arguments {
			s.WriteByte(' ')
			s.WriteString(describe(argument))
		}
		fmt.Fprintf(&s, "  ; %s\n", l.Label)
	}
	return s.String()
}

// grids returns the grids of a launch's calls as text.
func grids(l *tensor.Launch) string {
	var all []string
	for _, c := range l.Calls {
		all = append(all, c.Grid.String())
	}
	return strings.Join(all, ", ")
}

// describe returns an argument as text: a buffer as its place in an arena, an integer in decimal,
// and a float as its bits.
func describe(a tensor.Argument) string {
	switch {
	case a.Buffer != nil:
		return fmt.Sprintf("%s%s+%d", [...]string{tensor.Read: "", tensor.Write: "=", tensor.ReadWrite: "~"}[a.Access], a.Buffer.Arena, a.Buffer.Offset)
	case a.Kind == tensor.Int32Kind:
		return fmt.Sprint(int32(a.Bits))
	default:
		return fmt.Sprintf("%#x", a.Bits)
	}
}
