// Package kernels holds the CUDA kernels: their sources, and the PTX that clang compiles them to,
// which a GPU's driver compiles further.
//
// Nouns. A source x.cu holds the kernels of a family of ops. It is compiled for every GPU from
// compute capability 7.0 on; x_sm80.cu and x_sm90.cu use features of later ones. A File is the PTX
// of a source, an Entry a kernel in it with the types of its parameters. The subset of CUDA that
// kernels use is in device.cuh, their arguments are in pollen.cuh.
//
// Where to start: relu.cu and sgld.cu are simple kernels, update.cuh is the frame of samplers and
// optimizers, product.cuh, stage.cuh and tile.cuh explain matrix products, tensorcore.cuh mma.sync,
// and hopper.cuh and nhwcgroup.cuh wgmma.
//
// Policy: the PTX is committed, as one compressed file (package bundle), and is what go generate
// makes of the sources with clang-19; NVIDIA's toolkit is not needed. Reductions have a fixed
// order, sums and products are rounded one by one, and fused multiply-adds are explicit.
//
//	go generate ./cuda/kernels                        compiles all sources
//	go run ./cuda/kernels/generate -print relu        prints a file of PTX
package kernels
