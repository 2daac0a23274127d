package op

import (
	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/tensor"
	"github.com/pollen-ml/pollen/tensor/kernel"
)

// absent is the index of an operand that a routine does not have.
const absent = -1

// operandIndex has the indices, among a launch's arguments, of a routine's operands.
type operandIndex struct{ out, a, b, bias int }

const (
	// preparedRows is the number of rows from which preparing a layer's weights in each step, such
	// as packing or transforming them, costs little compared with the step, and keeping them in
	// memory does not pay.
	preparedRows = 16
	// preparedElements bounds a layer's weights that are kept: larger ones may not fit in the
	// memory for all of them, and preparing them in each step costs more than using them as they
	// are.
	preparedElements = 8 << 20
)

// keepsPrepared reports whether a layer of the given number of rows, such as images, keeps prepared
// weights, which are its second input.
func keepsPrepared(l *graph.Lowering, rows int) bool {
	return rows < preparedRows && l.Fixed(1) && l.Shapes[1].Elements() <= preparedElements
}

// hostRoutine returns the host kernel of a launch that runs a routine of package tensor/kernel, a
// matrix product, convolution or pooling: its phases, its memory, and the phase that can be fused
// over row tiles. err is the error of planning the routine.
func hostRoutine(l *graph.Lowering, plan kernel.Routine, err error, at operandIndex) tensor.HostKernel {
	if err != nil {
		panic(errors.Wrap(err, "op: Shape accepted a shape that the kernel does not"))
	}
	phase := graph.Pick(l, routinePhase[float32], routinePhase[float64])
	host := tensor.HostKernel{Workspace: plan.Workspace * l.DType.Size(), Private: plan.Scratch * l.DType.Size()}
	for i, tiles := range plan.Phases {
		host.Phases = append(host.Phases, tensor.Phase{Tiles: tiles, Run: phase(&plan, i, at)})
	}
	if plan.Rows > 0 {
		host.RowTile = tensor.RowTile{
			Phase: len(plan.Phases) - 1, Rows: plan.Rows, Unit: plan.Unit, Parts: plan.Parts,
			Owns: func(i int, _ *tensor.Buffer) bool { return i == at.out || i == at.a },
			Run:  graph.Pick(l, routineRows[float32], routineRows[float64])(&plan, at),
		}
		if plan.Parts != nil { // a filter's gradient: both inputs have a row for each image, the output is a sum over them
			host.RowTile.Phase, host.RowTile.Owns = 0, func(i int, _ *tensor.Buffer) bool { return i == at.a || i == at.b }
		}
	}
	if plan.Planes.Count > 0 {
		host.Planes = tensor.Planes{Count: plan.Planes.Count, Run: graph.Pick(l, routinePlanes[float32], routinePlanes[float64])(&plan, at)}
		if plan.Planes.OneToOne {
			host.Planes.Input = at.a
		}
	}
	return host
}

func routinePlanes[T float32 | float64](plan *kernel.Routine, at operandIndex) func(a *tensor.Args, lo, hi int) {
	return func(a *tensor.Args, lo, hi int) { kernel.RunPlanes(plan, lo, hi, routineOperands[T](a, at)) }
}

func routineRows[T float32 | float64](plan *kernel.Routine, at operandIndex) func(a *tensor.Args, rows int, add bool) {
	return func(a *tensor.Args, rows int, add bool) {
		o := routineOperands[T](a, at)
		o.Add = add
		kernel.RunRows(plan, rows, o)
	}
}

func routinePhase[T float32 | float64](plan *kernel.Routine, phase int, at operandIndex) func(a *tensor.Args, tile int) {
	return func(a *tensor.Args, tile int) {
		kernel.Run(plan, phase, tile, routineOperands[T](a, at))
	}
}

// routineOperands returns the operands of a routine; some may be absent.
func routineOperands[T float32 | float64](a *tensor.Args, at operandIndex) kernel.Operands[T] {
	o := kernel.Operands[T]{
		Out:       tensor.Slice[T](a, at.out),
		A:         tensor.Slice[T](a, at.a),
		Workspace: tensor.Workspace[T](a),
		Scratch:   tensor.Private[T](a),
	}
	if at.b != absent {
		o.B = tensor.Slice[T](a, at.b)
	}
	if at.bias != absent {
		o.Bias = tensor.Slice[T](a, at.bias)
	}
	return o
}
