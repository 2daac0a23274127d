package tensor

import "fmt"

// Grid is how a GPU shares out a kernel's work for one chain: Threads, Blocks, Shares or Product.
// The kernel is written for it. The grid fixes the order of the kernel's sums, so it comes from
// shapes, not from the device.
type Grid interface {
	fmt.Stringer
	grid()
}

// Threads is a number of independent pieces of work, with a thread for each. A device may start
// fewer threads, each of which takes several pieces.
type Threads int

// Vec4 is a thread for every four neighbours of n elements.
func Vec4(n int) Threads { return Threads((n + 3) / 4) }

// warp is how many threads run side by side, on every NVIDIA GPU.
const warp = 32

// Warps is a warp of 32 threads for each of n rows.
func Warps(n int) Threads { return Threads(n * warp) }

// Blocks is Count pieces of work, each with max(1, Parts) blocks of threads.
type Blocks struct {
	Count, Parts int
	Threads      int // that have work to do in a block; the device rounds them up to whole warps
	Shared       int // bytes of a block's shared memory, besides the kernel's own arrays
	Plane        int // of Count sums over argument 1's planes of so many, in turn: windows_NAME sums what windows spread out; or 0
}

// Block is a single block of threads.
func Block(threads int) Blocks { return Blocks{Count: 1, Threads: threads} }

// Shares gives each block of threads at most Most of the items: few where a device has many
// multiprocessors, on which no bit may depend.
type Shares struct {
	Items, Most int
	Threads     int  // that have work to do in a block; the device rounds them up to whole warps
	Rows        bool // the kernel takes rows of arguments, so that several launches can be one: cuda/kernels/rows.cuh
}

// Product is the tiles of a matrix product [Rows Depth] x [Depth Columns], or of a convolution
// written as one, whose size the device chooses: it starts the kernel named after the tile. A
// call's arguments are the result, the two operands, the bias of a Forward product if it has one,
// and integers.
type Product struct {
	Rows, Columns, Depth int
	Images, Filter       bool // it is a convolution's; it is the gradient of its filter, not of the images
	Forward              bool // the kernel also adds the bias and, with ReLU, makes negatives 0
	ReLU, Mask           bool // with Mask argument 3 is no bias, but as large as the result, which is 0 where that is not above 0
	Height, Width        int  // of the images a forward convolution makes: [B Rows Height Width]
}

func (Threads) grid() {}
func (Blocks) grid()  {}
func (Shares) grid()  {}
func (Product) grid() {}

// String is "1296 threads".
func (t Threads) String() string { return fmt.Sprintf("%d threads", int(t)) }

// String is "5x2 blocks of 256", without the parts where there is one.
func (b Blocks) String() string {
	if b.Parts > 1 {
		return fmt.Sprintf("%dx%d blocks of %d", b.Count, b.Parts, b.Threads)
	}
	return fmt.Sprintf("%d blocks of %d", b.Count, b.Threads)
}

// String is "8 shares of 196".
func (s Shares) String() string { return fmt.Sprintf("%d shares of %d", s.Items, s.Threads) }

// String is "product 4x648x18": rows, columns and depth.
func (p Product) String() string { return fmt.Sprintf("product %dx%dx%d", p.Rows, p.Columns, p.Depth) }
