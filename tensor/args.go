package tensor

import (
	"fmt"
	"unsafe"
)

// Args is what a host kernel sees of its launch: the arguments for the chain it works on.
type Args struct {
	launch    *Launch
	base      [arenas][]byte
	workspace []byte
	private   []byte
}

// Slice returns the i-th argument's buffer as a slice of the arena's memory. It panics when the
// argument is not a buffer of T: that is a bug in a lowering.
func Slice[T Element](a *Args, i int) []T {
	b := a.launch.Arguments[i].Buffer
	if b == nil || b.DType != DTypeOf[T]() {
		panic(fmt.Sprintf("tensor: %s: argument %d is %v, not a buffer of %v", a.launch.Kernel, i, b, DTypeOf[T]()))
	}
	return cast[T](a.base[b.Arena][b.Offset:], b.Elements)
}

// Workspace is the launch's shared memory.
func Workspace[T Element](a *Args) []T { return cast[T](a.workspace, -1) }

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
