package tensor

import (
	"math"
	"slices"
)

// Access describes how a launch uses a buffer.
type Access uint8

// The accesses. A Write replaces the whole contents of the buffer.
const (
	Read Access = 1 << iota
	Write
	ReadWrite = Read | Write
)

// Kind is the type of a kernel's argument.
type Kind uint8

// The kinds of argument.
const (
	BufferKind Kind = iota
	Int32Kind
	Uint32Kind
	Float32Kind
	Float64Kind
	// OverflowKind is an integer of more than 32 bits, which no kernel accepts. Its Bits are the
	// integer.
	OverflowKind
)

// Argument is one argument of a kernel: a buffer with its access, or the bits of a scalar.
type Argument struct {
	Kind   Kind
	Buffer *Buffer
	Access Access
	Bits   uint64
}

// In returns the argument for a buffer that the kernel reads.
func In(b *Buffer) Argument { return Argument{Buffer: b, Access: Read} }

// Out returns the argument for a buffer that the kernel overwrites.
func Out(b *Buffer) Argument { return Argument{Buffer: b, Access: Write} }

// InOut returns the argument for a buffer that the kernel reads and updates.
func InOut(b *Buffer) Argument { return Argument{Buffer: b, Access: ReadWrite} }

// Int returns a 32-bit integer argument, or an argument of OverflowKind if v does not fit.
func Int(v int) Argument {
	if v < math.MinInt32 || v > math.MaxInt32 {
		return Argument{Kind: OverflowKind, Bits: uint64(v)}
	}
	return Argument{Kind: Int32Kind, Bits: uint64(uint32(int32(v)))}
}

// Bool returns the argument Int(1) or Int(0).
func Bool(on bool) Argument {
	if on {
		return Int(1)
	}
	return Int(0)
}

// Uint returns a 32-bit unsigned integer argument.
func Uint(v uint32) Argument { return Argument{Kind: Uint32Kind, Bits: uint64(v)} }

// Float returns a floating-point argument in the precision of dtype.
func Float(dtype DType, v float64) Argument {
	if dtype == Float64 {
		return Argument{Kind: Float64Kind, Bits: math.Float64bits(v)}
	}
	return Argument{Kind: Float32Kind, Bits: uint64(math.Float32bits(float32(v)))}
}

// Launch is one kernel with its arguments. The host runs Host; a GPU runs Calls, one after another.
type Launch struct {
	Kernel    string // "<op>_<direction>_<dtype>"
	Label     string // the graph node it computes, for errors and profiles
	Arguments []Argument
	Host      HostKernel
	Calls     []Call
}

// Call is one start of a GPU kernel. Its buffers are buffers of the launch's arguments, or
// workspace.
type Call struct {
	Kernel    string // the symbol
	Grid      Grid
	Arguments []Argument
}

// NewWorkspace returns a buffer through which the calls of one launch pass intermediate results,
// for example partial sums that the next call adds up. Its contents are undefined when the launch
// starts. It takes no memory on the host.
func NewWorkspace(dtype DType, elements int) *Buffer {
	return NewBuffer("workspace", Workspaces, dtype, elements)
}

// WithBuffers returns a copy of the launch in which every buffer of its arguments and of its calls'
// arguments, except workspace, is replaced by other(buffer).
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

// HostKernel is the work of a launch on the CPU: phases with a barrier between them, each divided
// into tiles that may run in any order and on any thread. The division depends only on shapes, so
// results do not depend on the number of threads.
//
// A sum over a large tensor, for example, has two phases: the tiles of the first write partial sums
// to the workspace, and the only tile of the second adds them in order.
type HostKernel struct {
	Phases    []Phase
	Workspace int     // bytes shared by all tiles of a launch; undefined when it starts, kept between phases
	Private   int     // bytes for one tile; undefined when the tile starts
	RowTile   RowTile // lets the launch be fused with its neighbours, if Rows is not 0
	Planes    Planes  // lets the launch alternate with its neighbour, if Count is not 0
	Joint     Joint   // lets the launch compute several chains at once, if Chains is above 1
	// Preparation lets the first phases run once instead of in every step, if Phases is not 0.
	Preparation Preparation
}

// Preparation declares that the first phases of a kernel only prepare one of its arguments, such as
// packing a layer's weights: they read this argument only, and write the workspace only, which the
// later phases do not change. If no launch changes the argument, these phases run only once and
// after each [Runner.Write] to it, and the workspace is kept: for each chain, or once if the chains
// share the argument.
type Preparation struct {
	Phases   int
	Argument int
}

// Joint computes a launch for several chains at once, which pays if they share an operand: the
// products of a data set with each chain's weights become one product with the weights of all
// chains, which reads the data once. The bits must be the same as chain by chain. A launch has a
// Joint or a RowTile, not both.
type Joint struct {
	Chains int // largest number of chains worth computing at once
	Bytes  int // size of the operand that they share
	// Kernel returns the kernel for a number of chains. Its phases find their buffers by [SliceOf].
	Kernel func(chains int) HostKernel
}

// Planes declares that a launch whose rows are images can compute some planes of the output of one
// image, so that it can alternate with the launch that reads them, a few planes at a time, while
// they are in cache. The wide image between a pointwise and a depthwise convolution, for example,
// is then never stored as a whole.
//
// A launch with Planes has a RowTile, in a single phase, and writes only its first argument. If
// each plane needs all inputs, these keep their values until the next launch ends.
type Planes struct {
	Count int // planes of a row of the first argument
	// Input is the argument whose planes correspond one to one to the output's; it is 0 if each
	// plane needs all inputs.
	Input int
	// Run computes planes [lo, hi) of a row. a holds only these planes of the first argument and of
	// Input.
	Run func(a *Args, lo, hi int)
}

// has reports whether an argument is reduced to planes.
func (p *Planes) has(argument int) bool { return argument == 0 || argument == p.Input }

// Phase is a number of tiles and the function that computes one of them. Run must not allocate.
type Phase struct {
	Tiles int
	Run   func(a *Args, tile int)
}

// elementsPerTile is the size of a tile of an elementwise kernel: large enough to hide the cost of
// claiming a tile, small enough for its operands to stay in the second-level cache.
const elementsPerTile = 8192

// Rows returns a host kernel for rows of width elements each. run processes the rows [lo, hi); no
// row is split between tiles.
func Rows(rows, width int, run func(a *Args, lo, hi int)) HostKernel {
	tile := rowsPerTile(width)
	return HostKernel{Phases: []Phase{{
		Tiles: (rows + tile - 1) / tile,
		Run:   func(a *Args, i int) { run(a, i*tile, min(rows, (i+1)*tile)) },
	}}}
}

// rowsPerTile returns the number of rows of the given width in a tile.
func rowsPerTile(width int) int { return max(1, elementsPerTile/max(1, width)) }

// Single returns a host kernel that runs on one thread.
func Single(run func(a *Args)) HostKernel {
	return HostKernel{Phases: []Phase{{Tiles: 1, Run: func(a *Args, _ int) { run(a) }}}}
}
