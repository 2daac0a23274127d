package graph

import "github.com/pollen-ml/pollen/tensor"

// Op is what a node computes from its inputs. An Op is a comparable struct of its attributes, with
// a value receiver.
type Op interface {
	// Name is the op's name, as in "conv2d".
	Name() string
	// Shape is the output's shape, or an error about the inputs' shapes or the attributes.
	Shape(inputs []tensor.Shape) (tensor.Shape, error)
	// Lower emits the launches that compute the output. The shapes have passed Shape.
	Lower(l *Lowering)
}

// Differentiable is an Op with a gradient. Gradients returns, for each input, the node
// dout * d output / d input, or nil for an input that does not hold floats. No loss is
// differentiated through another Op, unless that has a method Flat: its gradient is taken as 0.
type Differentiable interface {
	Op
	Gradients(b *Builder, inputs []*Node, output, dout *Node) []*Node
}

// Typed is an Op whose output's type is not the float in which it computes.
type Typed interface {
	Op
	DType() tensor.DType
}

// Mixed is an Op some of whose inputs do not hold the float in which it computes. InputType is what
// input i must hold; 0 stands for the float. The inputs of other ops hold it, or are a header.
type Mixed interface {
	Op
	InputType(i int) tensor.DType
}

// Updater is an Op that changes some of its inputs in place. These must be parameters or state, no
// two updaters may change the same one, and the output is something else, usually a statistic,
// never the changed input.
type Updater interface {
	Op
	Updates() []int
}

// Viewer is an Op whose output is its first input with another shape.
type Viewer interface {
	Op
	View()
}

// Fuser is an Op that can do a consumer's work as well, while its output is at hand. Fuse returns
// the Op for both, with the consumer's further inputs last.
type Fuser interface {
	Op
	Fuse(consumer Op) (fused Op, ok bool)
}

// Lowering is what an Op's Lower reads and writes.
type Lowering struct {
	DType  tensor.DType   // the float in which the op computes
	Shapes []tensor.Shape // of the inputs
	Shape  tensor.Shape   // of the output

	label    string
	inputs   []*tensor.Buffer
	output   *tensor.Buffer
	launches []tensor.Launch
	temps    []*tensor.Buffer
}

// In is input i as an argument that is read.
func (l *Lowering) In(i int) tensor.Argument { return tensor.In(l.inputs[i]) }

// InOut is input i as an argument that is updated.
func (l *Lowering) InOut(i int) tensor.Argument { return tensor.InOut(l.inputs[i]) }

// Out is the output.
func (l *Lowering) Out() tensor.Argument { return tensor.Out(l.output) }

// Temp is memory for floats from the op's first launch to its last.
func (l *Lowering) Temp(elements int) *tensor.Buffer {
	b := tensor.NewBuffer(l.label+" temporary", tensor.Scratch, l.DType, elements)
	l.temps = append(l.temps, b)
	return b
}

// Emit appends a launch, on a GPU of the kernel stem_f32 or stem_f64.
func (l *Lowering) Emit(stem string, grid tensor.Grid, host tensor.HostKernel, arguments ...tensor.Argument) {
	l.EmitCalls(stem, []tensor.Call{l.Call(stem, grid, arguments...)}, host, arguments...)
}

// EmitCalls is Emit with several kernels, or different arguments, on a GPU.
func (l *Lowering) EmitCalls(stem string, calls []tensor.Call, host tensor.HostKernel, arguments ...tensor.Argument) {
	l.launches = append(l.launches, tensor.Launch{
		Kernel:    stem + "_" + l.DType.Suffix(),
		Label:     l.label,
		Arguments: arguments,
		Host:      host,
		Calls:     calls,
	})
}

// Call is one of a launch's calls; stem is as in Emit.
func (l *Lowering) Call(stem string, grid tensor.Grid, arguments ...tensor.Argument) tensor.Call {
	return tensor.Call{Kernel: stem + "_" + l.DType.Suffix(), Grid: grid, Arguments: arguments}
}

// Pick is the instance of a generic host function for the op's float.
func Pick[F any](l *Lowering, f32, f64 F) F {
	if l.DType == tensor.Float64 {
		return f64
	}
	return f32
}
