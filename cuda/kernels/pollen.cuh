// What every kernel of Pollen includes: CUDA's keywords without the toolkit, the types of kernel
// arguments, and grid-stride loops.
//
// The same sources are compiled in two ways: by clang to PTX, without NVIDIA's headers, and as C++
// against emulator/source/shim.h, where each CUDA thread is a fiber.
//
// A kernel is written
//
//     KERNEL(relu_fwd_f32, 256)(Out<float> y, In<float> x, int n) { ... }
//
// with the symbol's name, the maximum block size, and the arguments of its tensor.Launch in order.
// A buffer argument holds the address of chain 0's copy and the distance in bytes to the next
// chain's copy; at() returns this chain's copy. The chain is blockIdx.z.
#pragma once

#ifdef POLLEN_EMULATOR
#include "../emulator/source/shim.h"
#else
#include "device.cuh"
#endif

// INLINE begins every device function: it is inlined into the kernel whatever its size. INLINED
// follows the parameters of a lambda.
#define INLINE __device__ inline __attribute__((always_inline))
#define INLINED __attribute__((always_inline))

namespace pollen {

// Buffer is an argument that lies in an arena: base is its address in chain 0, stride the number of
// bytes between two chains' copies, 0 if they share it. A kernel reads an In, fills an Out and
// updates an InOut. No two arguments of a launch overlap, unless both are only read.
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

// opaque returns v, and hides from the compiler that it does. Values computed from the result
// cannot be hoisted out of a loop, where they would occupy registers.
INLINE int opaque(int v) {
  asm volatile("" : "+r"(v));
  return v;
}

// first and step make a grid-stride loop: for (int i = first(); i < n; i += step()).
__device__ inline int first() { return blockIdx.x * blockDim.x + threadIdx.x; }
__device__ inline int step() { return gridDim.x * blockDim.x; }

}  // namespace pollen

using namespace pollen;
