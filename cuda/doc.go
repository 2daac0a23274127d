// Package cuda is the tensor.Device for NVIDIA GPUs from Volta on, one or several.
//
// # From a workload to a GPU
//
// A tensor.Workload lists the launches of a step. Each launch names the kernels that do its work,
// and the grids that they are written for. Load takes four steps:
//
//  1. Package internal/plan turns launches into calls: a kernel, its grid and block, its shared
//     memory, its arguments. It may fuse launches, such as a convolution with the pooling behind
//     it, or choose among kernels that compute the same product. It never calls the driver, and the
//     rest of this package can be read without it: a plan is a list of calls and the bytes of
//     scratch memory that they need.
//  2. The driver compiles the PTX of each kernel in the plan (module.go). Package kernels contains
//     the PTX.
//  3. Memory is allocated (shard.go). Chains are the grid's third dimension, and each has a copy of
//     the Chain and the Scratch arena.
//  4. With several GPUs, each gets a shard of the chains (runner.go).
//
// Run launches the calls of one step, or of several in a row, as one CUDA graph, and waits once at
// the end (run.go). The graph's edges follow from the data that the calls read and write
// (graph.go). Writes go through pinned memory and do not wait.
//
// # The driver
//
// Open finds the driver's library at run time (library.go, driver_purego.go), without cgo and
// without a toolkit, so that the same program runs where there is no GPU. Build with -tags cu to
// link gorgonia.org/cu instead, in a program that uses one of its contexts. Every driver call goes
// through one check, which names the call and adds the driver's own description. After a fatal
// error the GPU is lost: every later call returns an error that says so.
//
// # Features by compute capability
//
// Compute capability 8.0 has tensor cores for TF32 and BF16. On 9.0, convolutions in BF16 may use
// wgmma, whose operands the tensor cores read from shared memory; kernels compiled for it load on
// no other GPU. From 9.0 and CUDA 12.3 on, a call that depends on a single other call may begin
// before that call has ended, by programmatic dependent launch (pdl.go). This does not change the
// bits.
//
// Environment variables leave features out, to find the one at fault on a GPU that computes
// wrongly, fails or is slow: POLLEN_CUDA_AHEAD, POLLEN_CUDA_CAPABILITY, POLLEN_CUDA_GRAPHS,
// POLLEN_CUDA_ORDER, POLLEN_CUDA_PACKED, POLLEN_CUDA_PDL, POLLEN_CUDA_PIXELS, POLLEN_CUDA_ROUNDED,
// POLLEN_CUDA_WGMMA and POLLEN_CUDA_WINDOWS. The section "Switches" of docs/cuda.md lists their
// values.
//
// # Reproducibility
//
// With the same seed on the same GPU, a chain has the same bits however many other chains run.
//
// There is no fallback. Either the requested device and precision are used, or the error names what
// is missing.
package cuda
