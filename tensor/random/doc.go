// Package random gives randomness an address instead of a state: any element of any stream can be
// computed from its position. There is no generator to carry, split, save or restore.
//
// # Addresses and counters
//
// An [Address] names one stream: (seed, chain, step, stream). Philox4x32-10 is a bijection that
// turns a key of two words and a counter of four words into four random words, a quad. The seed is
// the key; the counter holds the rest of the address and the number of the quad:
//
//	element i of a stream = word i%4 of Philox(counter{i/4, step, stream, chain}, key{seed})
//
// The standard normal of weight 10 of a parameter with stream 2, in chain 3 at step 100, comes from
// words 2 and 3 of quad 2 at the address {Seed, Chain: 3, Step: 100, Stream: 2} (Box-Muller takes
// pairs of words), on any thread and in any order. Resuming a run needs only its step number.
//
// A block is BlockSize elements, which suit a buffer on the stack. An [Order] is a keyed bijection
// of [0, size), the sequence in which an epoch visits its data.
//
// # Reproducibility
//
// The same address gives the same bits on every machine. Words are integer arithmetic; uniforms and
// normals are a fixed sequence of IEEE float32 operations (add, subtract, multiply, square root,
// each rounded to nearest, none fused) without any platform's mathematical library. Scalar Go, the
// AVX2, AVX-512 and NEON assembly, and a CUDA kernel that follows the layout of Address.Counter and
// the operations of boxMuller with __fadd_rn, __fmul_rn and __fsqrt_rn agree in every bit.
//
// Philox: Salmon, Moraes, Dror, Shaw, Parallel random numbers: as easy as 1, 2, 3 (SC 2011).
package random
