package graph

import "github.com/pollen-ml/pollen/tensor"

// Op computes a node from its inputs. Its dynamic type is a comparable struct of attributes with
// value receivers: two equal Ops with the same inputs compute the same values.
//
// An op that needs more than these three methods implements one or more of the interfaces below,
// which the compiler looks for by type assertion.
type Op interface {
	// Name returns the op's name, such as "conv2d". Labels and error messages contain it.
	Name() string
	// Shape returns the output's shape, or an error if the number of inputs, a shape or an
	// attribute is wrong. It is called when the op is applied, so that errors name the layer.
	Shape(inputs []tensor.Shape) (tensor.Shape, error)
	// Lower emits the launches that compute the output. It is called by Compile, with shapes that
	// have passed Shape, and must emit at least one launch that writes Lowering.Out.
	Lower(l *Lowering)
}

// Differentiable is an Op with a vector-Jacobian product. Gradients applies the ops that compute
// dout * d output / d input for each input, and returns nil for inputs that are not floats. A loss
// cannot be differentiated through an op that is neither Differentiable nor a StopGradient.
type Differentiable interface {
	Op
	Gradients(b *Builder, inputs []*Node, output, dout *Node) []*Node
}

// StopGradient is an Op whose gradient is zero by definition, such as a comparison, which is
// piecewise constant. Gradients passes nothing through it, like JAX's stop_gradient.
type StopGradient interface {
	Op
	StopGradient()
}

// Typed is an Op whose output has a type other than the float in which it computes, such as the
// int32 labels of a minibatch.
type Typed interface {
	Op
	DType() tensor.DType
}

// Mixed is an Op with inputs of other types than the float in which it computes. InputType returns
// the type that input i must have; 0 stands for that float. The inputs of an op that is not Mixed
// must be of that float, or the uint64 header.
type Mixed interface {
	Op
	InputType(i int) tensor.DType
}

// Updater is an Op that changes some of its inputs in place; Updates returns their indices. They
// must be parameters or state, and no two updaters may change the same one. The output is a
// separate value, usually a statistic, and never an alias of a changed input: Gorgonia's machines,
// which know nothing of in-place updates, can then consume it safely.
type Updater interface {
	Op
	Updates() []int
}

// Viewer is an Op whose output is its first input with another shape, if View returns true for the
// shapes of the inputs. The op is not lowered then: the output shares the input's buffer.
type Viewer interface {
	Op
	View(in []tensor.Shape) bool
}

func isViewOf(op Op, in []tensor.Shape) bool {
	v, ok := op.(Viewer)
	return ok && v.View(in)
}

// Fuser is a producer that can also do the work of its only consumer while the output is still in
// registers or in the cache. Fuse returns the op that replaces both. Its inputs are the producer's,
// followed by the consumer's other inputs.
type Fuser interface {
	Op
	Fuse(consumer Op) (fused Op, ok bool)
}

// SumFuser is a consumer that can add up its first two inputs itself. Differentiation inserts a sum
// wherever a node has several consumers; FuseSum returns the op that replaces the sum and its
// consumer, with one input more.
type SumFuser interface {
	Op
	FuseSum() (fused Op, ok bool)
}

// RedundantInput is an Op, made by Fuse, that reads its last two inputs as one. The compiler drops
// the fusion unless both are the same value, or an Early op computes the first from the second.
type RedundantInput interface {
	Op
	RedundantInput()
}

// Selective is an Op, made by Fuse, that does not accept all inputs that the separate ops accept.
// The compiler drops the fusion if Accepts returns false.
type Selective interface {
	Op
	Accepts(in []tensor.Shape) bool
}

// Early is an Op that the compiler schedules right after its inputs, although it is applied much
// later. While a large input is in cache, it extracts the few bytes that a gradient needs, such as
// one byte for each pooling window; the input's memory is then free during the rest of the step.
type Early interface {
	Op
	Early()
}

// Lowering is the argument of an Op's Lower: shapes and buffers to read, and launches to emit.
type Lowering struct {
	DType  tensor.DType   // the float type in which the op computes
	Shapes []tensor.Shape // of the inputs
	Shape  tensor.Shape   // of the output

	label    string
	inputs   []*tensor.Buffer
	fixed    []bool
	output   *tensor.Buffer
	parts    []*tensor.Buffer
	launches []tensor.Launch
}

// In returns input i as an argument that is only read. The access matters: it decides the order in
// which a GPU may run launches, and the lifetimes in the memory plan.
func (l *Lowering) In(i int) tensor.Argument { return tensor.In(l.inputs[i]) }

// InOut returns input i as an argument that is updated in place.
func (l *Lowering) InOut(i int) tensor.Argument { return tensor.InOut(l.inputs[i]) }

// Fixed reports whether input i is an input of the program that no op changes. It has the same
// values in every step, unless the session writes others.
func (l *Lowering) Fixed(i int) bool { return l.fixed[i] }

// Out returns the output as an argument that is written without being read first: its initial
// contents are undefined.
func (l *Lowering) Out() tensor.Argument { return tensor.Out(l.output) }

// Part returns further output i of a Combination as an argument that is written, like Out.
func (l *Lowering) Part(i int) tensor.Argument { return tensor.Out(l.parts[i]) }

// Emit appends a launch: host on the CPU, and on a GPU the kernel called stem_f32 or stem_f64, over
// the grid, with the same arguments.
func (l *Lowering) Emit(stem string, grid tensor.Grid, host tensor.HostKernel, arguments ...tensor.Argument) {
	l.EmitCalls(stem, []tensor.Call{l.Call(stem, grid, arguments...)}, host, arguments...)
}

// EmitCalls appends a launch that a GPU runs as several kernels, or with other arguments than the
// host. Compile checks that the calls together read and write what arguments declares.
func (l *Lowering) EmitCalls(stem string, calls []tensor.Call, host tensor.HostKernel, arguments ...tensor.Argument) {
	l.launches = append(l.launches, tensor.Launch{
		Kernel:    stem + "_" + l.DType.Suffix(),
		Label:     l.label,
		Arguments: arguments,
		Host:      host,
		Calls:     calls,
	})
}

// Call returns one of the calls for EmitCalls; stem is as in Emit.
func (l *Lowering) Call(stem string, grid tensor.Grid, arguments ...tensor.Argument) tensor.Call {
	return tensor.Call{Kernel: stem + "_" + l.DType.Suffix(), Grid: grid, Arguments: arguments}
}

// Pick returns the instance of a generic host function for the float in which the op computes.
func Pick[F any](l *Lowering, f32, f64 F) F {
	if l.DType == tensor.Float64 {
		return f64
	}
	return f32
}
