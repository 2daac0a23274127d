// Package kernel holds the heavy loops of the host device: matrix multiplication, two-dimensional
// convolution in its three directions, and pooling, as pure functions over slices; and passes,
// which go once over slices of equal length: the updates of samplers and optimizers ([SGLD], [Adam]
// and so on), activations ([Raise], [PassAbove], [SiLU]), arithmetic, and the parts of
// normalizations ([WideSquares], [WideAffine]).
//
// Its nouns:
//
//   - a description ([Gemm], [Conv2D], [Pool2D]) is a comparable struct of sizes and options;
//   - a [Routine] is a description made ready once: tables, memory, how its work is cut up;
//   - its work is a sequence of phases, each a number of tiles, which may run at the same time; a
//     phase may begin when the one before it has ended;
//   - [Run] performs one tile on the slices in [Operands].
//
// Its one policy: the order of every sum depends only on the description, and the cutting of the
// work on the description and the instruction set. The bits of an output therefore do not depend on
// threads. Run never allocates.
//
// Tensors are dense and row-major; images are [B C H W]. Float32 takes a path in assembly, chosen
// when the program starts ([InstructionSet]): on amd64 AVX-512 where the processor has F, BW, DQ
// and VL and the operating system keeps its registers, else AVX2 with FMA; on arm64 NEON.
// Everything else, and every build with the tag purego, runs the portable loops. All give the same
// bits, but for products and convolutions in portable Go, which has no FMA.
//
// Multiplication follows the packed-panel scheme of Goto and van de Geijn ("Anatomy of
// High-Performance Matrix Multiplication", ACM TOMS 34(3), 2008); a convolution is such a product
// with panels read from the image, or, where a line of pixels fills vectors, the image itself. The
// gradient of the input is scattered where that saves multiplications with padding; that of a
// filter of few output channels is summed line by line. With filters of 3 x 3 and 5 x 5 and enough
// channels, patches of images are transformed by algorithms of Winograd, Cook and Toom, leaving a
// third to a fifth of the multiplications.
package kernel
