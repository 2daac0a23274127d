package plan

// GridStrideThreads is the block size of kernels with a grid-stride loop. They compute the same
// bits with any number of blocks.
const GridStrideThreads = 256

// warp is the number of threads that execute in lockstep.
const warp = 32

func ceilDiv(n, unit int) int { return (n + unit - 1) / unit }

// roundUpToWarps returns a block size with room for a number of threads.
func roundUpToWarps(threads int) int { return max(warp, ceilDiv(threads, warp)*warp) }
