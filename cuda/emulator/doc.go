// Package emulator runs the CUDA kernels on a machine without a GPU. It stands in for NVIDIA's
// driver, so that package cuda runs on it unchanged.
//
// Build compiles the sources in ../kernels as C++ for this machine, with source/shim.h instead of
// device.cuh, and links them into a shared library with an emulated driver: the calls that package
// cuda makes, on the host's memory, with the driver's answers to misuse. cuda.Open loads that
// library as if it were NVIDIA's.
//
//	driver := emulator.Open(t, emulator.Options{})
//	device, err := cuda.Open(cuda.Options{Driver: driver.Path})
//
// A block's threads are fibers (source/block.h), which switch at barriers, shuffles and matrix
// products of a warp. A thread that waits for threads that never arrive is an error that names the
// kernel, the block and the thread. Shared memory is NaN until it is stored to; asynchronous copies
// happen when they are waited for, on streams as in kernels. The order of threads is fixed, and
// therefore the results. A CUDA graph's nodes run in an order that its edges allow. It differs
// between launches, but is the same in each process: if an edge is missing, numbers are wrong.
//
// A Recording has launches with their memory. A program of the same kernels, compiled with a
// sanitizer, replays it and finds accesses outside buffers, undefined behaviour, and races of a
// block's threads for shared memory or of all threads for global memory.
//
// With POLLEN_TEST_DEVICE=ptx Build translates the committed PTX instead (package ptx), and the
// driver loads only that text. Custom PTX (kernels.Add) is always translated, as is any text that a
// Replay runs.
//
// Policy: a GPU accepts whatever the emulator accepts. It cannot check timing.
package emulator
