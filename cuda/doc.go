// Package cuda is the tensor.Device for NVIDIA GPUs: from Volta on, one or several.
//
// Open finds the driver's library at run time, so that the same program, built without cgo and
// without a toolkit, runs where there is no GPU. Build with -tags cu to link gorgonia.org/cu
// instead, in a program that holds one of its contexts.
//
// The calls of a tensor.Launch name kernels of package kernels, whose PTX the driver compiles when
// a schedule first needs it. Each has a grid, which geometry.go turns into blocks and threads; a
// matrix product may become two kernels. Chains are the grid's third dimension: each chain has a
// copy of the Chain and the Scratch arena in the GPU's memory. A step's calls, and those of several
// steps in a row, are CUDA graphs, whose edges are what the calls' data require (order.go); Run
// starts these and waits once. Writes go through pinned memory and do not wait. With several GPUs,
// chains are shared out evenly.
//
// On GPUs of compute capability 9.0, convolutions in bf16 may have the tensor cores read shared
// memory by themselves (wgmma), which no other GPU can.
//
// From compute capability 9.0 and CUDA 12.3 on, a call that follows a single other one may begin
// before that has ended, up to where it needs its results. POLLEN_CUDA_DEPENDENT=off, read by Open,
// has it begin afterwards. The bits are the same.
//
// To find the feature at fault on a GPU that computes wrongly, fails or is slow, environment
// variables read by Open leave features out: POLLEN_CUDA_CAPABILITY, POLLEN_CUDA_GRAPHS,
// POLLEN_CUDA_DEPENDENT, POLLEN_CUDA_WGMMA, POLLEN_CUDA_PACKED and POLLEN_CUDA_WINDOWS. The section
// "Switches" of docs/cuda.md lists their values.
//
// Same seed, same GPU, same bits, whatever chains run beside a chain. Every driver call goes
// through one check, which names the call with the driver's own explanation; after an error that a
// context does not survive, the GPU is lost, and says so from then on.
//
// Policy: there is no fall-back. What was asked for runs, or the error says what is missing.
package cuda
