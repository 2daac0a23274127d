// Package kernel holds the heavy loops of the host device as pure functions over slices: matrix
// multiplication, two-dimensional convolution in its three directions, pooling, inner products in
// float64 ([WideGram]), and elementwise passes. Passes go once over slices of equal length: the
// updates of samplers and optimizers ([SGLD], [Adam] and others), activations ([Raise],
// [PassAbove], [SiLU]), arithmetic, and the parts of normalizations ([WideSquaresPlanes],
// [WideAffinePlanes]).
//
// # Descriptions, routines, tiles
//
//   - A description ([Gemm], [Conv2D], [Pool2D]) is a comparable struct of sizes and options.
//   - A [Routine] is a description prepared to run: tables, memory requirements, and the division
//     of the work into phases of tiles. Preparing it is slow and done once.
//   - The tiles of a phase may run concurrently; a phase starts when the previous one has ended.
//   - [Run] computes one tile on the slices in [Operands]. It never allocates.
//
// The order of every sum depends only on the description, and the division into tiles only on the
// description and the instruction set. The bits of an output therefore do not depend on the number
// of threads.
//
// # Instruction sets
//
// Tensors are dense and row-major; images are [B C H W]. float32 runs in assembly, chosen at
// program start ([InstructionSet]): on amd64 AVX-512 if the processor has F, BW, DQ and VL and the
// operating system saves its registers, else AVX2 with FMA; on arm64 NEON. Everything else, and
// every build with the tag purego, runs portable loops. All give the same bits, except for products
// and convolutions in portable Go, which has no FMA.
//
// # Algorithms
//
// Multiplication packs panels as in Goto and van de Geijn ("Anatomy of High-Performance Matrix
// Multiplication", ACM TOMS 34(3), 2008), the scheme of BLIS. A convolution is such a product with
// panels packed from the image (implicit GEMM) or, where a line of pixels fills vectors, read from
// the image in place. The gradient of the input is scattered (col2im without the matrix) where that
// saves multiplications with padding; the gradient of a filter with few output channels is summed
// line by line. For filters of 3 x 3 and 5 x 5 with enough channels, patches of images are
// transformed by algorithms of Winograd, Cook and Toom, which leave a third to a fifth of the
// multiplications.
package kernel
