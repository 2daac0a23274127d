// What every kernel of Pollen includes: the language's few words without a toolkit, the kernels' arguments, chains.
//
// The same sources compile in two ways. For a GPU clang makes PTX of them; no header of NVIDIA's is needed. For a machine without
// one they compile as C++ against emulator/source/shim.h, where a thread is a fiber.
//
// A kernel is written
//
//     KERNEL(relu_fwd_f32, 256)(Out<float> y, In<float> x, int n) { ... }
//
// with the symbol's name, the most threads of a block, and the arguments of its tensor.Launch in their order. A buffer's
// argument is its place in chain 0 with the distance to the next chain's copy; at() is this chain's copy. Chains are blockIdx.z.
#pragma once

#ifdef POLLEN_EMULATOR
#include "../emulator/source/shim.h"
#else
#include "device.cuh"
#endif

// INLINE begins every function of a kernel: it becomes part of the kernel, however large it is. INLINED follows a lambda's arguments.
#define INLINE __device__ inline __attribute__((always_inline))
#define INLINED __attribute__((always_inline))

namespace pollen {

// Buffer is an argument that lies in an arena: base in chain 0, stride bytes from one chain's copy to the next one's. In is read,
// Out is filled, InOut is updated. No two arguments of a launch overlap, unless both are read.
template <class T>
struct Buffer {
  unsigned long long base, stride;

  __device__ T* at() const { return globalPointer<T>(base + stride * blockIdx.z); }
};

template <class T>
using In = Buffer<const T>;
template <class T>
using Out = Buffer<T>;
template <class T>
using InOut = Buffer<T>;

// unknown is v, which the compiler cannot tell: what is computed from it stays where it is, out of a loop's registers.
INLINE int opaque(int v) {
  asm volatile("" : "+r"(v));
  return v;
}

// first and step are a grid-stride loop over a launch's elements.
__device__ inline int first() { return blockIdx.x * blockDim.x + threadIdx.x; }
__device__ inline int step() { return gridDim.x * blockDim.x; }

}  // namespace pollen

using namespace pollen;
