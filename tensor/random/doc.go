// Package random gives randomness an address instead of a state: any number of any stream can be
// computed from its place, so there is no generator to carry, split, save or restore.
//
// Nouns. An Address names one stream: (seed, chain, step, stream). A quad is the four words that
// one run of Philox4x32-10 makes; element i of a stream comes from word i%4 of quad i/4. A block is
// BlockSize elements, which suit a buffer on the stack. An Order is a keyed bijection of
// [0, size), the sequence in which an epoch visits its data.
//
// Policy: the same address gives the same bits on every machine. Words are integer arithmetic;
// uniforms and normals are a fixed sequence of IEEE float32 operations (add, subtract, multiply,
// square root, each rounded to nearest, none fused), without any platform's mathematical library.
// Scalar Go, the AVX2, AVX-512 and NEON assembly and a CUDA kernel that follows the layout of
// Address.Counter and the operations of boxMuller with __fadd_rn, __fmul_rn and __fsqrt_rn agree in
// every bit.
//
// Philox: Salmon, Moraes, Dror, Shaw, Parallel random numbers: as easy as 1, 2, 3 (SC 2011).
package random
