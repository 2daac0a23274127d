package tensor

import (
	"fmt"
	"unsafe"
)

// Args is what a host kernel sees of its launch: the arguments for the chain it works on, or, in a
// strip, its rows of those that it owns.
type Args struct {
	launch    *Launch
	base      [arenas][]byte
	workspace []byte
	private   []byte

	rowTile      *RowTile // nil outside
	lo, hi       int      // its rows
	part         int      // that they are of
	local        []byte   // memory for what the launches of a stage pass on, strip by strip
	localOffsets []int    // of the arguments in it, or -1; nil if none is there
}

// Slice returns the i-th argument's buffer, or what a strip has of it. It panics when the argument
// is not a buffer of T: that is a bug in a lowering.
func Slice[T Element](a *Args, i int) []T {
	b := a.launch.Arguments[i].Buffer
	if b == nil || b.DType != DTypeOf[T]() {
		panic(fmt.Sprintf("tensor: %s: argument %d is %v, not a buffer of %v", a.launch.Kernel, i, b, DTypeOf[T]()))
	}
	if a.rowTile == nil || !a.rowTile.Owns(i, b) {
		return cast[T](a.base[b.Arena][b.Offset:], b.Elements)
	}
	row := b.Elements / a.rowTile.Rows
	if a.localOffsets != nil && a.localOffsets[i] >= 0 {
		return cast[T](a.local[a.localOffsets[i]:], (a.hi-a.lo)*row)
	}
	return cast[T](a.base[b.Arena][b.Offset+a.lo*row*b.DType.Size():], (a.hi-a.lo)*row)
}

// Workspace is the launch's shared memory, in the first phase a strip's part.
func Workspace[T Element](a *Args) []T {
	if a.rowTile == nil || a.rowTile.Phase > 0 {
		return cast[T](a.workspace, -1)
	}
	lo, hi, shares := a.lo, a.hi, a.rowTile.Rows
	if a.rowTile.Parts != nil {
		lo, hi, shares = a.part, a.part+1, len(a.rowTile.Parts)-1
	}
	share := a.launch.Host.Workspace / shares
	return cast[T](a.workspace[lo*share:hi*share], -1)
}

// Private is the tile's own memory.
func Private[T Element](a *Args) []T { return cast[T](a.private, -1) }

func cast[T Element](memory []byte, n int) []T {
	var zero T
	size := int(unsafe.Sizeof(zero))
	if n < 0 {
		n = len(memory) / size
	}
	if n == 0 {
		return nil
	}
	memory = memory[:n*size] // checks the bounds and reads nothing: other tiles may be writing
	return unsafe.Slice((*T)(unsafe.Pointer(&memory[0])), n)
}

func addressOf(memory []byte) uintptr { return uintptr(unsafe.Pointer(unsafe.SliceData(memory))) }
