// The words of CUDA that the kernels use, for clang without NVIDIA's headers. emulator/shim.h has the same words for a CPU.
#pragma once

#define __global__ __attribute__((global))
#define __device__ __attribute__((device))
#define __shared__ __attribute__((shared))
#define __launch_bounds__(threads) __attribute__((launch_bounds(threads)))

// clang's own names for the special registers: threadIdx, blockIdx, blockDim, gridDim.
#include <__clang_cuda_builtin_vars.h>

#define KERNEL(name, threads) extern "C" __global__ __launch_bounds__(threads) void name

// SHARED is count elements that a block's threads share, undefined at its start. DYNAMIC_SHARED is as much as the launch asks for.
#define SHARED(T, name, count) __shared__ T name[count]
#define DYNAMIC_SHARED(T, name) extern __shared__ T name[]

namespace pollen {

// globalPointer is an address in global memory, so that the loads through it are global loads.
template <class T>
__device__ inline T* globalPointer(unsigned long long address) {
  return (T*)(__attribute__((address_space(1))) T*)address;
}

// barrier waits for all threads of the block.
__device__ inline void barrier() { __syncthreads(); }

// warpBarrier waits for all threads of the warp; all 32 take part.
__device__ inline void warpBarrier() { __nvvm_bar_warp_sync(0xffffffffu); }

// shuffleXor is the value that the lane whose number differs in mask's bits gives. All 32 lanes take part.
__device__ inline float shuffleXor(float v, int mask) { return __nvvm_shfl_sync_bfly_f32(0xffffffffu, v, mask, 31); }
__device__ inline int shuffleXor(int v, int mask) { return __nvvm_shfl_sync_bfly_i32(0xffffffffu, v, mask, 31); }
__device__ inline double shuffleXor(double v, int mask) {
  union { double d; int i[2]; } u = {v};
  u.i[0] = shuffleXor(u.i[0], mask);
  u.i[1] = shuffleXor(u.i[1], mask);
  return u.d;
}

}  // namespace pollen
