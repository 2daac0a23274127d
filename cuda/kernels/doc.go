// Package kernels holds the CUDA kernels: their sources, and the PTX that clang makes of these,
// which a GPU's driver compiles.
//
// Nouns. A source x.cu holds the kernels of a family of ops. It is compiled for every GPU from
// compute capability 7.0 on; x_sm80.cu and x_sm90.cu use features of later ones. A File is the PTX
// of a source, an Entry a kernel in it with the types of its parameters. The few words of CUDA that
// kernels use are in device.cuh, the arguments in pollen.cuh.
//
// Policy: the PTX is committed, as one compressed file (package bundle), and is what go generate
// makes of the sources with clang-19; NVIDIA's toolkit is not needed. Reductions have a fixed
// order, sums and products are rounded one by one, and a fused multiply-add is written where it is
// wanted.
//
//	go generate ./cuda/kernels                        compiles all sources
//	go run ./cuda/kernels/generate -print relu        prints a file of PTX
package kernels
