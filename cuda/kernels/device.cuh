// The words of CUDA that the kernels use, for clang without NVIDIA's headers. emulator/source/shim.h has the same words for a CPU.
#pragma once

#define __global__ __attribute__((global))
#define __device__ __attribute__((device))
#define __shared__ __attribute__((shared))
#define __launch_bounds__(...) __attribute__((launch_bounds(__VA_ARGS__)))

// clang's own names for the special registers: threadIdx, blockIdx, blockDim, gridDim.
#include <__clang_cuda_builtin_vars.h>

// KERNEL's arguments after the name are the most threads of a block and, where registers shall be few, how many blocks a multiprocessor shall hold.
#define KERNEL(name, ...) extern "C" __global__ __launch_bounds__(__VA_ARGS__) void name

// SHARED is count elements that a block's threads share, undefined at its start. DYNAMIC_SHARED is as much as the launch asks for.
#define SHARED(T, name, count) __shared__ T name[count]
#define DYNAMIC_SHARED(T, name) extern __shared__ T name[]

namespace pollen {

// globalPointer is an address in global memory, so that the loads through it are global loads.
template <class T>
__device__ inline T* globalPointer(unsigned long long address) {
  return (T*)(__attribute__((address_space(1))) T*)address;
}

// rsqrtApprox and reciprocalApprox are 1/sqrt(x) and 1/x as the hardware approximates them, for numbers of a usual size.
__device__ inline float rsqrtApprox(float x) { return __nvvm_rsqrt_approx_ftz_f(x); }
__device__ inline float reciprocalApprox(float x) { return __nvvm_rcp_approx_ftz_f(x); }

// maxNaN is the larger of two numbers, NaN if one of them is. From sm_80 on.
__device__ inline float maxNaN(float a, float b) {
  float v;
  asm("max.NaN.f32 %0, %1, %2;" : "=f"(v) : "f"(a), "f"(b));
  return v;
}

// needed are values that are needed together, here.
__device__ inline void keepLive(float a, float b, float c, float d) { asm volatile("" : : "f"(a), "f"(b), "f"(c), "f"(d)); }
__device__ inline void keepLive(double a, double b, double c, double d) { asm volatile("" : : "d"(a), "d"(b), "d"(c), "d"(d)); }

// loadIf is *from, or 0 without a look at it: no branch, so that many loads are on their way at once. Nothing may write there during the kernel.
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

// loadIf4 is that of four neighbours, at a multiple of 16 bytes.
__device__ inline void loadIf4(bool there, const float* from, float* to) {
  asm("{ .reg .pred there; setp.ne.b32 there, %5, 0; mov.b32 %0, 0; mov.b32 %1, 0; mov.b32 %2, 0; mov.b32 %3, 0;"
      " @there ld.global.nc.v4.f32 {%0, %1, %2, %3}, [%4]; }"
      : "=f"(to[0]), "=f"(to[1]), "=f"(to[2]), "=f"(to[3])
      : "l"(from), "r"((int)there));
}

// prefetchLine has the second-level cache fetch a line of 128 bytes.
__device__ inline void prefetchLine(const void* p) { asm volatile("prefetch.global.L2 [%0];" : : "l"(p)); }

// copyAsync4 and copyAsync16 copy so many bytes from global to shared memory, or zeros without a look at from: cp.async, from sm_80 on. The copies
// since the last copyAsyncCommit are a group; copyAsyncWait<n> waits for all groups of the thread but the newest n. Other threads see them after a
// barrier.
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

// barrier waits for all threads of the block.
__device__ inline void barrier() { __syncthreads(); }

// warpBarrier waits for all threads of the warp; all 32 take part.
__device__ inline void warpBarrier() { __nvvm_bar_warp_sync(0xffffffffu); }

// firstLane is the value of the warp's lane 0. All 32 lanes take part. The compiler knows that it is the same in all of them.
__device__ inline int firstLane(int v) { return __nvvm_shfl_sync_idx_i32(0xffffffffu, v, 0, 31); }

// shuffleXor is the value that the lane whose number differs in mask's bits gives. All 32 lanes take part.
__device__ inline float shuffleXor(float v, int mask) { return __nvvm_shfl_sync_bfly_f32(0xffffffffu, v, mask, 31); }
__device__ inline int shuffleXor(int v, int mask) { return __nvvm_shfl_sync_bfly_i32(0xffffffffu, v, mask, 31); }
__device__ inline double shuffleXor(double v, int mask) {
  union { double d; int i[2]; } u = {v};
  u.i[0] = shuffleXor(u.i[0], mask);
  u.i[1] = shuffleXor(u.i[1], mask);
  return u.d;
}

// packBF16 is the word of the bfloat16 numbers nearest to low and high.
__device__ inline unsigned packBF16(float low, float high) {
  unsigned word;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(word) : "f"(high), "f"(low));
  return word;
}

// ldmatrixX4 has each lane bring the place of 16 bytes of shared memory, some bytes behind memory: those of lane 8 m + r are row r of matrix m. A lane
// gets of each matrix the word lane % 4 of row lane / 4; transposed, the 16-bit numbers of rows 2 (lane % 4) and one more in column lane / 4. From sm_75 on.
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

// mmaTF32_16x8x8 is d += a b over a warp, a 16 x 8, b 8 x 8, d 16 x 8: the PTX manual's fragments for m16n8k8. From sm_80 on.
__device__ inline void mmaTF32_16x8x8(float d[4], const unsigned a[4], const unsigned b[2]) {
  asm("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

// mmaBF16_16x8x16 is d += a b over a warp, a 16 x 16, b 16 x 8, d 16 x 8, two bfloat16 to a word: the fragments for m16n8k16. From sm_80 on.
__device__ inline void mmaBF16_16x8x16(float d[4], const unsigned a[4], const unsigned b[2]) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

}  // namespace pollen
