package tensor

import "fmt"

// Grid describes how a GPU divides a kernel's work for one chain: Threads, Blocks, Shares or
// Product. A kernel is written for one of them. The grid fixes the order of the kernel's sums, so
// it must follow from shapes, not from the device.
type Grid interface {
	fmt.Stringer
	grid()
}

// Threads is a number of independent pieces of work, one thread each. A device may start fewer
// threads, each looping over several pieces.
type Threads int

// Vec4 returns one thread for every four consecutive elements of n: Vec4(10) is 3 threads.
func Vec4(n int) Threads { return Threads((n + 3) / 4) }

// warp is the number of threads that execute in lockstep, on every NVIDIA GPU.
const warp = 32

// Warps returns a warp of 32 threads for each of n rows.
func Warps(n int) Threads { return Threads(n * warp) }

// Blocks is Count pieces of work, each with max(1, Parts) blocks of threads.
type Blocks struct {
	Count, Parts int
	Threads      int // threads of a block that have work; the device rounds up to whole warps
	Shared       int // bytes of dynamic shared memory per block, in addition to the kernel's own arrays
	// Plane, if not 0, declares that the kernel NAME computes Count sums over planes of Plane
	// elements of argument 1. The kernel windows_NAME then computes the same sums from the compact
	// form of argument 1, the gradient of pooling windows.
	Plane int
}

// Block returns a single block of threads.
func Block(threads int) Blocks { return Blocks{Count: 1, Threads: threads} }

// Shares divides Items items among blocks of threads, with at most MaxItems for each block. A
// device with many multiprocessors uses fewer items per block; results must not depend on that.
type Shares struct {
	Items, MaxItems int
	Threads         int  // threads of a block that have work; the device rounds up to whole warps
	Rows            bool // the kernel takes a table of arguments, so that several launches can be merged: cuda/kernels/rows.cuh
}

// Product is a matrix product [Rows Depth] x [Depth Columns], or a convolution expressed as one
// (implicit GEMM). The device chooses the tile size and starts the kernel named after it. The
// call's arguments are the result, the two operands, the bias of a Forward product if it has one,
// and integers.
type Product struct {
	Rows, Columns, Depth int
	// Images is set for a convolution and its gradients, Filter only for the filter's gradient.
	Images, Filter bool
	Forward        bool // the kernel also adds the bias and, with ReLU, sets negative results to 0
	// With Mask, argument 3 is an array of the size of the result instead of a bias, and the result
	// is 0 where the array is not positive.
	ReLU, Mask bool
	// AtMost6: the kernel of a Forward convolution sets results above 6 to 6; with ReLU that is
	// ReLU6.
	AtMost6       bool
	Height, Width int // of a forward convolution's output images: [B Rows Height Width]
}

func (Threads) grid() {}
func (Blocks) grid()  {}
func (Shares) grid()  {}
func (Product) grid() {}

// String returns, for example, "1296 threads".
func (t Threads) String() string { return fmt.Sprintf("%d threads", int(t)) }

// String returns, for example, "5x2 blocks of 256", or "5 blocks of 256" with one block per piece.
func (b Blocks) String() string {
	if b.Parts > 1 {
		return fmt.Sprintf("%dx%d blocks of %d", b.Count, b.Parts, b.Threads)
	}
	return fmt.Sprintf("%d blocks of %d", b.Count, b.Threads)
}

// String returns, for example, "8 shares of 196".
func (s Shares) String() string { return fmt.Sprintf("%d shares of %d", s.Items, s.Threads) }

// String returns rows, columns and depth, for example "product 4x648x18".
func (p Product) String() string { return fmt.Sprintf("product %dx%dx%d", p.Rows, p.Columns, p.Depth) }
