// The subset of CUDA C++ that the kernels use, for clang without NVIDIA's headers.
// emulator/source/shim.h implements the same interface on a CPU.
#pragma once

#define __global__ __attribute__((global))
#define __device__ __attribute__((device))
#define __shared__ __attribute__((shared))
#define __launch_bounds__(...) __attribute__((launch_bounds(__VA_ARGS__)))

// clang's declarations of the special registers threadIdx, blockIdx, blockDim and gridDim.
#include <__clang_cuda_builtin_vars.h>

// KERNEL(name, threads, blocks) begins a kernel with the symbol name. threads is the maximum block
// size; blocks, which is optional, is the minimum number of resident blocks per multiprocessor, and
// so limits the registers per thread. Both are CUDA's __launch_bounds__.
#define KERNEL(name, ...) extern "C" __global__ __launch_bounds__(__VA_ARGS__) void name

// SHARED declares an array of count elements in shared memory, which is undefined when a block
// starts. DYNAMIC_SHARED declares the dynamic shared memory, whose size is an argument of the
// launch.
#define SHARED(T, name, count) __shared__ T name[count]
#define DYNAMIC_SHARED(T, name) extern __shared__ T name[]

namespace pollen {

// globalPointer converts an address into a pointer to global memory, so that the compiler emits
// ld.global instead of generic loads.
template <class T>
__device__ inline T* globalPointer(unsigned long long address) {
  return (T*)(__attribute__((address_space(1))) T*)address;
}

// rsqrtApprox and reciprocalApprox are the hardware's approximations of 1/sqrt(x) and 1/x,
// rsqrt.approx.ftz and rcp.approx.ftz. The caller must ensure that x is far from the ends of
// float's range (math::inFastRange).
__device__ inline float rsqrtApprox(float x) { return __nvvm_rsqrt_approx_ftz_f(x); }
__device__ inline float reciprocalApprox(float x) { return __nvvm_rcp_approx_ftz_f(x); }

// maxNaN is max.NaN: the larger of two numbers, or NaN if either is NaN. Requires sm_80.
__device__ inline float maxNaN(float a, float b) {
  float v;
  asm("max.NaN.f32 %0, %1, %2;" : "=f"(v) : "f"(a), "f"(b));
  return v;
}

// keepLive makes the compiler hold four values in registers at this point. Without it clang splits
// a 16-byte load into four loads, each next to its use.
__device__ inline void keepLive(float a, float b, float c, float d) { asm volatile("" : : "f"(a), "f"(b), "f"(c), "f"(d)); }
__device__ inline void keepLive(double a, double b, double c, double d) { asm volatile("" : : "d"(a), "d"(b), "d"(c), "d"(d)); }

// loadIf returns *from if there is set, and 0 without accessing memory otherwise. The load is
// predicated, not branched around, so several loads can be in flight at once. It uses ld.global.nc:
// nothing may write to that memory during the kernel.
__device__ inline float loadIf(bool there, const float* from) {
  float v;
  asm("{ .reg .pred there; setp.ne.b32 there, %2, 0; mov.b32 %0, 0; @there ld.global.nc.f32 %0, [%1]; }" : "=f"(v) : "l"(from), "r"((int)there));
  return v;
}
__device__ inline double loadIf(bool there, const double* from) {
  double v;
  asm("{ .reg .pred there; setp.ne.b32 there, %2, 0; mov.b64 %0, 0; @there ld.global.nc.f64 %0, [%1]; }" : "=d"(v) : "l"(from), "r"((int)there));
  return v;
}

__device__ inline unsigned loadIf(bool there, const unsigned char* from) {
  unsigned v;
  asm("{ .reg .pred there; setp.ne.b32 there, %2, 0; mov.b32 %0, 0; @there ld.global.u8 %0, [%1]; }" : "=r"(v) : "l"(from), "r"((int)there));
  return v;
}

// loadIf4 is loadIf for four consecutive floats. from must be a multiple of 16 bytes.
__device__ inline void loadIf4(bool there, const float* from, float* to) {
  asm("{ .reg .pred there; setp.ne.b32 there, %5, 0; mov.b32 %0, 0; mov.b32 %1, 0; mov.b32 %2, 0; mov.b32 %3, 0;"
      " @there ld.global.nc.v4.f32 {%0, %1, %2, %3}, [%4]; }"
      : "=f"(to[0]), "=f"(to[1]), "=f"(to[2]), "=f"(to[3])
      : "l"(from), "r"((int)there));
}

// prefetchLine prefetches the 128-byte line that contains p into L2.
__device__ inline void prefetchLine(const void* p) { asm volatile("prefetch.global.L2 [%0];" : : "l"(p)); }

// copyAsync4 and copyAsync16 are cp.async (sm_80): they copy 4 or 16 bytes from global to shared
// memory without passing through registers. If there is not set, they write zeros and do not access
// from.
//
// The copies that a thread issued since its last copyAsyncCommit form a group. copyAsyncWait<n>
// waits until at most n of the thread's newest groups are pending. A wait covers the thread's own
// copies only: other threads may read them after a barrier.
__device__ inline unsigned sharedAddress(void* p) { return (unsigned)(unsigned long long)(__attribute__((address_space(3))) void*)p; }
__device__ inline void copyAsync4(void* to, const void* from, bool there) {
  asm volatile("{ .reg .pred not; setp.eq.b32 not, %2, 0; cp.async.ca.shared.global [%0], [%1], 4, not; }"
               :
               : "r"(sharedAddress(to)), "l"(from), "r"((int)there));
}
__device__ inline void copyAsync16(void* to, const void* from, bool there) {
  asm volatile("{ .reg .pred not; setp.eq.b32 not, %2, 0; cp.async.cg.shared.global [%0], [%1], 16, not; }"
               :
               : "r"(sharedAddress(to)), "l"(from), "r"((int)there));
}
__device__ inline void copyAsyncCommit() { asm volatile("cp.async.commit_group;" : : : "memory"); }
template <int n>
__device__ inline void copyAsyncWait() {
  asm volatile("cp.async.wait_group %0;" : : "n"(n) : "memory");
}

// barrier is __syncthreads.
__device__ inline void barrier() { __syncthreads(); }

// warpBarrier is __syncwarp with all 32 lanes.
__device__ inline void warpBarrier() { __nvvm_bar_warp_sync(0xffffffffu); }

// firstLane returns lane 0's value in all 32 lanes. The compiler then knows that the value is
// uniform in the warp.
__device__ inline int firstLane(int v) { return __nvvm_shfl_sync_idx_i32(0xffffffffu, v, 0, 31); }

// shuffleXor returns the value of the lane whose number is this lane's XOR mask. All 32 lanes must
// call it.
__device__ inline float shuffleXor(float v, int mask) { return __nvvm_shfl_sync_bfly_f32(0xffffffffu, v, mask, 31); }
__device__ inline int shuffleXor(int v, int mask) { return __nvvm_shfl_sync_bfly_i32(0xffffffffu, v, mask, 31); }
__device__ inline double shuffleXor(double v, int mask) {
  union { double d; int i[2]; } u = {v};
  u.i[0] = shuffleXor(u.i[0], mask);
  u.i[1] = shuffleXor(u.i[1], mask);
  return u.d;
}

// packBF16 rounds two floats to bfloat16, to nearest, and packs them into a word.
__device__ inline unsigned packBF16(float low, float high) {
  unsigned word;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(word) : "f"(high), "f"(low));
  return word;
}

// ldmatrixX4 is ldmatrix.x4 (sm_75): it loads four 8 x 8 matrices of 16-bit numbers from shared
// memory. Lane 8 m + r passes the address of row r of matrix m, 16 bytes at memory + bytes. In
// return each lane gets one word of each matrix, that is two neighbouring numbers: word lane % 4 of
// row lane / 4. These are the fragments that mma expects.
//
// ldmatrixX4Trans transposes: a lane gets the numbers of rows 2 (lane % 4) and 2 (lane % 4) + 1 in
// column lane / 4.
__device__ inline void ldmatrixX4(unsigned (&words)[4], void* memory, unsigned bytes) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(words[0]), "=r"(words[1]), "=r"(words[2]), "=r"(words[3])
               : "r"(sharedAddress(memory) + bytes)
               : "memory");
}
__device__ inline void ldmatrixX4Trans(unsigned (&words)[4], void* memory, unsigned bytes) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(words[0]), "=r"(words[1]), "=r"(words[2]), "=r"(words[3])
               : "r"(sharedAddress(memory) + bytes)
               : "memory");
}

// mmaTF32_16x8x8 computes d += a b across a warp, with a 16 x 8, b 8 x 8 and d 16 x 8, in the
// fragment layout of mma.m16n8k8 (PTX ISA). Requires sm_80.
__device__ inline void mmaTF32_16x8x8(float d[4], const unsigned a[4], const unsigned b[2]) {
  asm("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

// mmaBF16_16x8x16 computes d += a b across a warp, with a 16 x 16, b 16 x 8 and d 16 x 8, in the
// fragment layout of mma.m16n8k16. A word holds two bfloat16 numbers. Requires sm_80.
__device__ inline void mmaBF16_16x8x16(float d[4], const unsigned a[4], const unsigned b[2]) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

}  // namespace pollen
