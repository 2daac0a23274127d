package tensor

import (
	"fmt"
	"unsafe"
)

// Args gives a host kernel its launch's arguments for the chain that it works on. Within a row
// tile, buffers that the launch owns are reduced to the tile's rows.
type Args struct {
	launch    *Launch
	base      [arenas][]byte
	group     [][arenas][]byte // of the chains that a Joint's kernel works on
	chain     int
	workspace []byte
	private   []byte

	rowTile      *RowTile    // nil outside row tiles
	lo, hi       int         // the tile's rows
	part         int         // the partial sum to which the rows belong
	local        []byte      // the worker's memory for intermediates of a fused stage
	localOffsets []int       // of each argument in local, -1 if in an arena; nil if none is local
	block        *planeBlock // the planes to compute of the tile's only row; nil for all
}

// planeBlock holds the range [lo, hi) of the planes of an image that a launch computes. Of the
// buffer between, only these planes are in memory.
type planeBlock struct {
	lo, hi  int
	between *Buffer
}

// SliceOf returns all elements of the i-th argument's buffer for one of the chains that a [Joint]'s
// kernel computes, counted from 0.
func SliceOf[T Element](a *Args, chain, i int) []T {
	b := a.launch.buffer(i, DTypeOf[T]())
	return cast[T](a.group[chain][b.Arena][b.Offset:], b.Elements)
}

// Slice returns the elements of the i-th argument's buffer: all of them, or the row tile's if the
// launch owns the buffer. It panics if the argument is not a buffer of T, which is a bug in a
// lowering.
func Slice[T Element](a *Args, i int) []T {
	b := a.launch.buffer(i, DTypeOf[T]())
	if a.rowTile == nil || !a.rowTile.Owns(i, b) {
		return cast[T](a.base[b.Arena][b.Offset:], b.Elements)
	}
	row := b.Elements / a.rowTile.Rows
	first, n := 0, (a.hi-a.lo)*row
	if a.block != nil && a.launch.Host.Planes.has(i) {
		plane := row / a.launch.Host.Planes.Count
		n = (a.block.hi - a.block.lo) * plane
		if b != a.block.between {
			first = a.block.lo * plane
		}
	}
	if a.localOffsets != nil && a.localOffsets[i] >= 0 {
		return cast[T](a.local[a.localOffsets[i]+first*b.DType.Size():], n)
	}
	return cast[T](a.base[b.Arena][b.Offset+(a.lo*row+first)*b.DType.Size():], n)
}

// buffer returns the buffer of argument i, whose type must be dtype.
func (l *Launch) buffer(i int, dtype DType) *Buffer {
	b := l.Arguments[i].Buffer
	if b == nil || b.DType != dtype {
		panic(fmt.Sprintf("tensor: %s: argument %d is %v, not a buffer of %v", l.Kernel, i, b, dtype))
	}
	return b
}

// Workspace returns the memory shared by the launch's tiles. In a row tile of the first phase it is
// only the fraction that belongs to the tile's rows or part.
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

// Private returns the tile's own memory.
func Private[T Element](a *Args) []T { return cast[T](a.private, -1) }

// cast views memory as n elements of T, or as many as fit if n is negative.
func cast[T Element](memory []byte, n int) []T {
	var zero T
	size := int(unsafe.Sizeof(zero))
	if n < 0 {
		n = len(memory) / size
	}
	if n == 0 {
		return nil
	}
	memory = memory[:n*size] // checks the bounds without reading: other tiles may be writing
	return unsafe.Slice((*T)(unsafe.Pointer(&memory[0])), n)
}

func addressOf(memory []byte) uintptr { return uintptr(unsafe.Pointer(unsafe.SliceData(memory))) }
