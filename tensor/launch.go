package tensor

import (
	"math"
	"slices"
)

// Access says what a launch does with a buffer.
type Access uint8

// The accesses. A Write replaces all that the buffer held.
const (
	Read Access = 1 << iota
	Write
	ReadWrite = Read | Write
)

// Kind is the type of a launch's argument as the device's kernel declares it.
type Kind uint8

// The kinds of argument.
const (
	BufferKind Kind = iota
	Int32Kind
	Uint32Kind
	Float32Kind
	Float64Kind
)

// Argument is one argument of a kernel: a buffer with its access, or a scalar's bits.
type Argument struct {
	Kind   Kind
	Buffer *Buffer
	Access Access
	Bits   uint64
}

// In is a buffer that the kernel reads.
func In(b *Buffer) Argument { return Argument{Buffer: b, Access: Read} }

// Out is a buffer that the kernel fills.
func Out(b *Buffer) Argument { return Argument{Buffer: b, Access: Write} }

// InOut is a buffer that the kernel updates.
func InOut(b *Buffer) Argument { return Argument{Buffer: b, Access: ReadWrite} }

// Int is a 32-bit integer.
func Int(v int) Argument { return Argument{Kind: Int32Kind, Bits: uint64(uint32(int32(v)))} }

// Bool is 1 or 0, as Int.
func Bool(on bool) Argument {
	if on {
		return Int(1)
	}
	return Int(0)
}

// Uint is a 32-bit unsigned integer.
func Uint(v uint32) Argument { return Argument{Kind: Uint32Kind, Bits: uint64(v)} }

// Float is a floating-point scalar in the program's precision.
func Float(dtype DType, v float64) Argument {
	if dtype == Float64 {
		return Argument{Kind: Float64Kind, Bits: math.Float64bits(v)}
	}
	return Argument{Kind: Float32Kind, Bits: uint64(math.Float32bits(float32(v)))}
}

// Launch is one kernel with its arguments. The host runs Host; a GPU starts Calls, one after the
// other.
type Launch struct {
	Kernel    string // "<op>_<direction>_<dtype>"
	Label     string // the graph node it computes, for errors and profiles
	Arguments []Argument
	Host      HostKernel
	Calls     []Call
}

// Call is one start of a GPU's kernel. Its buffers are those of the launch's arguments, and
// workspace.
type Call struct {
	Kernel    string // the symbol
	Grid      Grid
	Arguments []Argument
}

// NewWorkspace returns a buffer for what a launch's calls leave to later ones, undefined at first.
// It takes no memory on the host.
func NewWorkspace(dtype DType, elements int) *Buffer {
	return NewBuffer("workspace", Workspaces, dtype, elements)
}

// WithBuffers returns the launch with other buffers in its arguments and its calls', except
// workspace.
func (l Launch) WithBuffers(other func(*Buffer) *Buffer) Launch {
	l.Arguments = withBuffers(l.Arguments, other)
	l.Calls = slices.Clone(l.Calls)
	for i := range l.Calls {
		l.Calls[i].Arguments = withBuffers(l.Calls[i].Arguments, other)
	}
	return l
}

func withBuffers(arguments []Argument, other func(*Buffer) *Buffer) []Argument {
	arguments = slices.Clone(arguments)
	for i, a := range arguments {
		if a.Buffer != nil && a.Buffer.Arena != Workspaces {
			arguments[i].Buffer = other(a.Buffer)
		}
	}
	return arguments
}

// HostKernel is a launch's work on the CPU: phases with a barrier between them, each cut into tiles
// that may run in any order and on any thread. The cut depends on shapes, not on threads.
type HostKernel struct {
	Phases    []Phase
	Workspace int     // bytes for all tiles of a launch, undefined at its start, kept between phases
	Private   int     // bytes for one tile, undefined at its start
	RowTile   RowTile // what one of the phases keeps to, if it does
}

// Phase is a number of tiles and what computes one. Run must not allocate.
type Phase struct {
	Tiles int
	Run   func(a *Args, tile int)
}

// elementsPerTile is how many elements one tile of an elementwise kernel has: long enough to hide the
// cost of claiming a tile, short enough that its operands stay in the second-level cache.
const elementsPerTile = 8192

// Rows is a host kernel whose run handles rows [lo, hi) of some width, none of which is cut in two.
func Rows(rows, width int, run func(a *Args, lo, hi int)) HostKernel {
	tile := rowsPerTile(width)
	return HostKernel{Phases: []Phase{{
		Tiles: (rows + tile - 1) / tile,
		Run:   func(a *Args, i int) { run(a, i*tile, min(rows, (i+1)*tile)) },
	}}}
}

// rowsPerTile is how many rows of some width make a tile.
func rowsPerTile(width int) int { return max(1, elementsPerTile/max(1, width)) }

// Single is a host kernel that runs on one thread.
func Single(run func(a *Args)) HostKernel {
	return HostKernel{Phases: []Phase{{Tiles: 1, Run: func(a *Args, _ int) { run(a) }}}}
}
