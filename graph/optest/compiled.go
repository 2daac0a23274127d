package optest

import (
	"fmt"
	"slices"
	"strings"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/tensor"
)

// compiledCase is a row compiled for one float type.
type compiledCase struct {
	c         *Case
	dtype     tensor.DType
	program   *graph.Program
	shape     tensor.Shape // of the output
	variables []variable   // what is compared after each step
	unused    map[int]bool // inputs that nothing in the program reads
}

// variable is a value of the program that the suite reads and compares.
type variable struct {
	title string // for messages
	name  string // in the program
	dtype tensor.DType
	shape tensor.Shape
	input int // the input whose gradient or update it is
	role  role
}

type role uint8

const (
	output role = iota
	update
	gradient
)

// The names in a subject's graph.
const (
	outputName    = "y"
	cotangentName = "cotangent"
)

func inputName(i int) string { return fmt.Sprint("x", i) }

// compile builds a row's graph: the output, the gradients of sum(cotangent * y), or both.
func (c *Case) compile(dtype tensor.DType, keepOutput, keepGradients bool) (*compiledCase, error) {
	b := graph.New(dtype)
	s := &compiledCase{c: c, dtype: dtype}
	nodes := c.inputs(b)
	var y *graph.Node
	if c.Build != nil {
		y = c.Build(b, nodes)
	} else {
		y = b.Apply(c.Op, nodes...)
	}
	if b.Err() != nil {
		return nil, b.Err()
	}
	s.shape = graph.ShapeOf(y)
	if keepOutput {
		b.Output(outputName, y)
		s.variables = append(s.variables, variable{title: "output", name: outputName, dtype: graph.DTypeOf(y), shape: s.shape})
	}
	for _, i := range c.updates() {
		s.variables = append(s.variables, variable{
			title: fmt.Sprint("updated input ", i), name: inputName(i), dtype: dtype, shape: c.Inputs[i].Shape, input: i, role: update,
		})
	}
	if keepGradients {
		s.differentiate(b, nodes, y)
	}
	var err error
	if s.program, err = b.Compile(); err != nil {
		return nil, err
	}
	dump := s.program.Dump()
	s.unused = map[int]bool{}
	for i, in := range c.Inputs {
		s.unused[i] = !in.isHeader() && !strings.Contains(dump, fmt.Sprintf("  input   %s ", inputName(i)))
	}
	return s, nil
}

// inputs makes the nodes of a row's inputs.
func (c *Case) inputs(b *graph.Builder) []*graph.Node {
	var nodes []*graph.Node
	for i, in := range c.Inputs {
		switch {
		case in.isHeader():
			nodes = append(nodes, b.Header())
		case in.isFloat():
			nodes = append(nodes, b.State(inputName(i), nil, in.Shape...))
		default:
			nodes = append(nodes, b.Data(inputName(i), in.DType, in.Shape...))
		}
	}
	return nodes
}

// differentiate keeps the gradients of sum(cotangent * y) of all float inputs.
func (s *compiledCase) differentiate(b *graph.Builder, nodes []*graph.Node, y *graph.Node) {
	loss := b.Apply(weightedSum{}, y, b.State(cotangentName, nil, s.shape...))
	var with []*graph.Node
	var which []int
	for i, in := range s.c.Inputs {
		if in.isFloat() {
			with = append(with, nodes[i])
			which = append(which, i)
		}
	}
	names := map[*graph.Node]string{} // a program keeps a node only once, but the gradients of a sum's terms are one node
	for i, g := range b.Gradients(loss, with...) {
		name, ok := names[g]
		if !ok {
			name = fmt.Sprint("dx", which[i])
			names[g] = name
			b.Output(name, g)
		}
		s.variables = append(s.variables, variable{
			title: fmt.Sprint("gradient of input ", which[i]), name: name, dtype: s.dtype,
			shape: s.c.Inputs[which[i]].Shape, input: which[i], role: gradient,
		})
	}
}

// weightedSum is the loss whose gradients are tested, sum over i of cotangent_i y_i: y and
// cotangent of the same shape -> a scalar. It must be the node that is differentiated. Its dout is
// then 1, so that its gradients are its inputs, and it is dead code: it never becomes a launch,
// for which a device would need a kernel.
type weightedSum struct{}

func (weightedSum) Name() string                               { return "weighted sum" }
func (weightedSum) Shape([]tensor.Shape) (tensor.Shape, error) { return tensor.Shape{}, nil }

func (weightedSum) Lower(*graph.Lowering) {
	panic(errors.New("optest: the loss is dead code, and the compiler kept it"))
}

func (weightedSum) Gradients(_ *graph.Builder, in []*graph.Node, _, _ *graph.Node) []*graph.Node {
	return []*graph.Node{in[1], in[0]}
}

// cotangent returns the weights of the output in the loss that is differentiated.
func (s *compiledCase) cotangent(chain int) []float64 {
	return s.c.draw(cotangentName, chain, s.shape, Normal)
}

func (s *compiledCase) hasGradients() bool {
	return slices.ContainsFunc(s.variables, func(v variable) bool { return v.role == gradient })
}

// trace has the values of each variable of one chain after each step.
type trace [][][]float64

// run makes the row's steps for chains first to first+chains-1, and returns each chain's trace.
// With again, it makes them a second time in the same memory, and the bits must be the same.
func (s *compiledCase) run(device tensor.Device, first, chains int, again bool) ([]trace, error) {
	session, err := s.program.Load(device, graph.LoadOptions{Seed: seed, FirstChain: first, Chains: chains})
	if err != nil {
		return nil, err
	}
	defer session.Close()
	traces, err := s.pass(session, first)
	if err != nil || !again {
		return traces, err
	}
	second, err := s.pass(session, first)
	if err != nil {
		return nil, err
	}
	for chain := range traces {
		if err := s.sameBits(second[chain], traces[chain]); err != nil {
			return nil, errors.Wrapf(err, "chain %d, the same steps in the same memory again", first+chain)
		}
	}
	return traces, nil
}

// pass writes all inputs and makes the row's steps.
func (s *compiledCase) pass(session *graph.Session, first int) ([]trace, error) {
	traces := make([]trace, session.Chains())
	for chain := range traces {
		if err := s.write(session, chain, s.c.values(first+chain)); err != nil {
			return nil, err
		}
		if s.hasGradients() {
			if err := writeFloats(session, s.dtype, cotangentName, chain, s.cotangent(first+chain)); err != nil {
				return nil, err
			}
		}
	}
	for range s.c.steps() {
		if err := session.Run(1); err != nil {
			return nil, err
		}
		for chain := range traces {
			row, err := s.read(session, chain)
			if err != nil {
				return nil, err
			}
			traces[chain] = append(traces[chain], row)
		}
	}
	return traces, nil
}

// write sets a chain's inputs.
func (s *compiledCase) write(session *graph.Session, chain int, values [][]float64) error {
	for i := range s.c.Inputs {
		if err := s.writeInput(session, chain, i, values[i]); err != nil {
			return err
		}
	}
	return nil
}

func (s *compiledCase) writeInput(session *graph.Session, chain, i int, values []float64) error {
	in := s.c.Inputs[i]
	switch {
	case s.unused[i]:
		return nil
	case in.isHeader():
		return graph.Write(session, "header", chain, 0, tensor.Convert[uint64](values))
	case in.isFloat():
		return writeFloats(session, s.dtype, inputName(i), chain, values)
	case in.DType == tensor.Uint8:
		return graph.Write(session, inputName(i), 0, 0, tensor.Convert[uint8](values))
	default:
		return graph.Write(session, inputName(i), 0, 0, tensor.Convert[int32](values))
	}
}

// read returns the values of all variables.
func (s *compiledCase) read(session *graph.Session, chain int) ([][]float64, error) {
	var row [][]float64
	for _, v := range s.variables {
		values, err := readFloats(session, v.dtype, v.name, chain, v.shape.Elements())
		if err != nil {
			return nil, err
		}
		row = append(row, values)
	}
	return row, nil
}

// sameBits compares two traces bit for bit.
func (s *compiledCase) sameBits(got, want trace) error {
	for step := range want {
		for i, v := range s.variables {
			if err := Same(got[step][i], want[step][i]); err != nil {
				return errors.Wrapf(s.annotate(err, v), "step %d, %s", step, v.title)
			}
		}
	}
	return nil
}

// annotate adds the variable and its shape to a comparison's error.
func (s *compiledCase) annotate(err error, v variable) error {
	var m *mismatch
	if errors.As(err, &m) {
		m.subject, m.shape = s, v.shape
	}
	return err
}

func writeFloats(session *graph.Session, dtype tensor.DType, name string, chain int, values []float64) error {
	if dtype == tensor.Float32 {
		return graph.Write(session, name, chain, 0, tensor.Convert[float32](values))
	}
	return graph.Write(session, name, chain, 0, values)
}

func readFloats(session *graph.Session, dtype tensor.DType, name string, chain, n int) ([]float64, error) {
	switch dtype {
	case tensor.Float32:
		return readAs[float32](session, name, chain, n)
	case tensor.Int32:
		return readAs[int32](session, name, chain, n)
	case tensor.Uint8:
		return readAs[uint8](session, name, chain, n)
	default:
		return readAs[float64](session, name, chain, n)
	}
}

func readAs[T tensor.Element](session *graph.Session, name string, chain, n int) ([]float64, error) {
	values := make([]T, n)
	err := graph.Read(session, name, chain, 0, values)
	return tensor.Convert[float64](values), err
}
