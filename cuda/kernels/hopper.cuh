// What GPUs of capability 9.0 can do beside device.cuh: copies of whole lines that a barrier in memory waits for, and matrix products by four warps that
// read shared memory by themselves. emulator/source/hopper.h has the same words for a CPU.
#pragma once

#include "pollen.cuh"

#ifdef POLLEN_EMULATOR
#include "../emulator/source/hopper.h"
#else

namespace pollen {

// Brick is the type of a kernel's dynamic shared memory that products and bulk copies use: it begins at a multiple of 128 bytes. Such a kernel has no
// other shared memory, which would come before; its barriers lie behind its operands.
struct alignas(128) AlignedShared {
  unsigned words[32];
};

// MBarrier, in shared memory, counts a phase's arrivals and bytes. The first phase is 0.
using MBarrier = unsigned long long;

// mbarrierInit has each phase wait for so many arrivals. fenceProxyAsync makes that known to the copies that come after a barrier of the block.
__device__ inline void mbarrierInit(MBarrier* b, int arrivals) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" : : "r"(sharedAddress(b)), "r"(arrivals) : "memory");
}
__device__ inline void fenceProxyAsync() { asm volatile("fence.proxy.async.shared::cta;" : : : "memory"); }

// mbarrierArriveExpectTx arrives, and has the phase wait for so many bytes.
__device__ inline void mbarrierArriveExpectTx(MBarrier* b, int bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" : : "r"(sharedAddress(b)), "r"(bytes) : "memory");
}

// arrive arrives without bytes.
__device__ inline void mbarrierArrive(MBarrier* b) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" : : "r"(sharedAddress(b)) : "memory");
}

// copyAsyncBulk copies a multiple of 16 bytes, from and to a multiple, from global to shared memory; they count in the barrier's phase when they are there.
__device__ inline void copyAsyncBulk(void* to, const void* from, int bytes, MBarrier* b) {
  asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];"
               :
               : "r"(sharedAddress(to)), "l"(from), "r"(bytes), "r"(sharedAddress(b))
               : "memory");
}

// mbarrierTryWait waits a while for the end of the phase whose number is even or odd, or the one before it, and tells whether it has ended.
__device__ inline bool mbarrierTryWait(MBarrier* b, int odd) {
  int passed;
  asm volatile("{ .reg .pred passed; mbarrier.try_wait.parity.shared::cta.b64 passed, [%1], %2; selp.b32 %0, 1, 0, passed; }"
               : "=r"(passed)
               : "r"(sharedAddress(b)), "r"(odd)
               : "memory");
  return passed;
}

// timer counts units of 2^32 ns, 4.3 s. trap fails the launch.
__device__ inline unsigned globalTimerHigh() {
  unsigned now;
  asm volatile("mov.u32 %0, %%globaltimer_hi;" : "=r"(now));
  return now;
}
__device__ inline void trap() { asm volatile("trap;" : : : "memory"); }

// A product's sums belong to it from wgmmaFence on until wgmmaWait<n>, which waits for all products but those of the newest n wgmmaCommit.
__device__ inline void wgmmaFence() { asm volatile("wgmma.fence.sync.aligned;" : : : "memory"); }
__device__ inline void wgmmaCommit() { asm volatile("wgmma.commit_group.sync.aligned;" : : : "memory"); }
template <int n>
__device__ inline void wgmmaWait() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" : : "n"(n) : "memory");
}

// setMaxRegisters changes how many registers each thread of four warps may have, of those that the block has together: some give what others then take.
template <int n, bool more>
__device__ inline void setMaxRegisters() {
  if (more)
    asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" : : "n"(n));
  else
    asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" : : "n"(n));
}

// describe is how a product reads a matrix whose depth is contiguous, without swizzle: eight rows of 16 bytes lie side by side from memory + bytes on, the
// next 16 bytes of depth acrossDepth bytes further on, the next eight rows acrossRows.
__device__ inline unsigned long long matrixDescriptor(void* memory, unsigned bytes, unsigned acrossDepth, unsigned acrossRows) {
  unsigned at = sharedAddress(memory) + bytes;
  return (unsigned long long)(acrossRows >> 4) << 32 | (at & 0x3ffff) >> 4 | (acrossDepth >> 4) << 16;
}

// Of a matrix whose columns are contiguous describe says how eight places of depth, 16 bytes each, lie: the next eight are acrossDepth bytes further on,
// the next eight columns acrossRows.

// The product of 64 x 16 and 16 x columns bfloat16 numbers, by the 128 threads of four warps: sums += a b. Of its sums, lane 4 g + t of warp w has those of
// row 16 w + g in columns 8 j + 2 t and one more as 4 j and one more, and those of eight rows below as 4 j + 2 and one more.
#define POLLEN_SUMS(i) \
  "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3]), "+f"(d[i + 4]), "+f"(d[i + 5]), "+f"(d[i + 6]), "+f"(d[i + 7])
#define POLLEN_SUMS32 POLLEN_SUMS(0), POLLEN_SUMS(8), POLLEN_SUMS(16), POLLEN_SUMS(24)
#define POLLEN_NAMES32                                                                                                                     \
  "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, " \
  "%29, %30, %31"
#define POLLEN_NAMES56                                                                                                                       \
  POLLEN_NAMES32 ", %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, %48, %49, %50, %51, %52, %53, %54, %55"
#define POLLEN_WGMMA(columns, names, ...)                                                                                                     \
  __device__ inline void wgmma(float (&d)[columns / 2], unsigned long long a, unsigned long long b) {                                         \
    asm volatile("{ .reg .pred add; setp.ne.b32 add, %[one], 0; wgmma.mma_async.sync.aligned.m64n" #columns "k16.f32.bf16.bf16 {" names               \
                 "}, %[a], %[b], add, 1, 1, 0, 0; }"                                                                                                  \
                 : __VA_ARGS__                                                                                                                        \
                 : [a] "l"(a), [b] "l"(b), [one] "r"(1));                                                                                             \
  }
POLLEN_WGMMA(64, POLLEN_NAMES32, POLLEN_SUMS32)
POLLEN_WGMMA(112, POLLEN_NAMES56, POLLEN_SUMS32, POLLEN_SUMS(32), POLLEN_SUMS(40), POLLEN_SUMS(48))
POLLEN_WGMMA(128, POLLEN_NAMES56 ", %56, %57, %58, %59, %60, %61, %62, %63", POLLEN_SUMS32, POLLEN_SUMS(32), POLLEN_SUMS(40), POLLEN_SUMS(48),
                     POLLEN_SUMS(56))

// That of numbers in registers, two to a word, and 16 x 64 in memory, whose columns are contiguous. Of a, lane 4 g + t of warp w has row 16 w + g in columns
// 2 t and one more as word 0, that of eight rows below as 1, and those of eight columns further on as 2 and 3. They must stay there like sums.
__device__ inline void wgmma(float (&d)[32], const unsigned (&a)[4], unsigned long long b) {
  asm volatile("{ .reg .pred add; setp.ne.b32 add, %[one], 0; wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 {" POLLEN_NAMES32
               "}, {%[a0], %[a1], %[a2], %[a3]}, %[b], add, 1, 1, 1; }"
               : POLLEN_SUMS32
               : [a0] "r"(a[0]), [a1] "r"(a[1]), [a2] "r"(a[2]), [a3] "r"(a[3]), [b] "l"(b), [one] "r"(1));
}

}  // namespace pollen

#endif

namespace pollen {

// mbarrierWait waits for the end of the phase whose number is even or odd, or the one before it. It fails the launch if that takes between 8.6 and 12.9
// seconds: copies take microseconds, so the barrier would never see the bytes that it expects.
INLINE void mbarrierWait(MBarrier* b, int odd) {
  constexpr unsigned limit = 3;
  for (unsigned begin = 0; !mbarrierTryWait(b, odd);) {
    unsigned now = globalTimerHigh();
    if (begin == 0) begin = now;
    if (now - begin >= limit) trap();
  }
}

}  // namespace pollen
