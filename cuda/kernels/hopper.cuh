// The instructions of compute capability 9.0 that the kernels use: mbarriers, bulk asynchronous
// copies, and wgmma, matrix products of a warpgroup (four warps) whose operands the tensor cores
// read from shared memory. emulator/source/hopper.h implements the same interface on a CPU.
#pragma once

#include "pollen.cuh"

#ifdef POLLEN_EMULATOR
#include "../emulator/source/hopper.h"
#else

namespace pollen {

// AlignedShared is the element type of the dynamic shared memory that wgmma and bulk copies use: it
// begins at a multiple of 128 bytes. A kernel that uses it must not declare other shared memory,
// which would be placed before it. Its mbarriers lie behind the operands.
struct alignas(128) AlignedShared {
  unsigned words[32];
};

// MBarrier is an mbarrier object in shared memory. A phase of it completes when the expected number
// of threads have arrived and the expected bytes have been copied; then the next phase begins.
// Waits name a phase by its parity: the first phase, number 0, is even.
using MBarrier = unsigned long long;

// mbarrierInit sets how many arrivals complete a phase. After initialising barriers a thread must
// call fenceProxyAsync, followed by a barrier of the block, before any bulk copy uses them: bulk
// copies belong to the asynchronous proxy, which otherwise may not see the initialisation.
__device__ inline void mbarrierInit(MBarrier* b, int arrivals) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" : : "r"(sharedAddress(b)), "r"(arrivals) : "memory");
}
__device__ inline void fenceProxyAsync() { asm volatile("fence.proxy.async.shared::cta;" : : : "memory"); }

// mbarrierArriveExpectTx arrives at the barrier and adds bytes to what the current phase waits for.
__device__ inline void mbarrierArriveExpectTx(MBarrier* b, int bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" : : "r"(sharedAddress(b)), "r"(bytes) : "memory");
}

// mbarrierArrive arrives at the barrier.
__device__ inline void mbarrierArrive(MBarrier* b) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" : : "r"(sharedAddress(b)) : "memory");
}

// copyAsyncBulk is cp.async.bulk: one thread copies bytes from global to shared memory. All of to,
// from and bytes must be multiples of 16. When the bytes have arrived, they count towards the phase
// of b.
__device__ inline void copyAsyncBulk(void* to, const void* from, int bytes, MBarrier* b) {
  asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];"
               :
               : "r"(sharedAddress(to)), "l"(from), "r"(bytes), "r"(sharedAddress(b))
               : "memory");
}

// mbarrierTryWait is mbarrier.try_wait.parity: it waits for a limited time, and returns whether the
// phase of the given parity has completed. The phase must be the current one or the one before it.
__device__ inline bool mbarrierTryWait(MBarrier* b, int odd) {
  int passed;
  asm volatile("{ .reg .pred passed; mbarrier.try_wait.parity.shared::cta.b64 passed, [%1], %2; selp.b32 %0, 1, 0, passed; }"
               : "=r"(passed)
               : "r"(sharedAddress(b)), "r"(odd)
               : "memory");
  return passed;
}

// globalTimerHigh is the upper half of the global timer; it counts units of 2^32 ns, 4.3 s. trap
// aborts the launch.
__device__ inline unsigned globalTimerHigh() {
  unsigned now;
  asm volatile("mov.u32 %0, %%globaltimer_hi;" : "=r"(now));
  return now;
}
__device__ inline void trap() { asm volatile("trap;" : : : "memory"); }

// wgmma is asynchronous. wgmmaFence must come before the first product that uses a set of
// accumulator registers, and the registers must not be touched until wgmmaWait. wgmmaCommit closes
// a group of products; wgmmaWait<n> waits until at most n of the newest groups are pending.
__device__ inline void wgmmaFence() { asm volatile("wgmma.fence.sync.aligned;" : : : "memory"); }
__device__ inline void wgmmaCommit() { asm volatile("wgmma.commit_group.sync.aligned;" : : : "memory"); }
template <int n>
__device__ inline void wgmmaWait() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" : : "n"(n) : "memory");
}

// setMaxRegisters is setmaxnreg: the four warps of a warpgroup change their registers per thread to
// n. Warps that only issue copies release registers, which the multiplying warps then take.
template <int n, bool more>
__device__ inline void setMaxRegisters() {
  if (more)
    asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" : : "n"(n));
  else
    asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" : : "n"(n));
}

// matrixDescriptor returns the shared-memory matrix descriptor of a wgmma operand without swizzle.
// The operand consists of core matrices, 8 rows of 16 bytes (8 bfloat16 numbers) that are
// contiguous, 128 bytes in all.
//
// For an operand whose depth is contiguous (K-major), the core matrix of the next 8 numbers of
// depth is acrossDepth bytes further on, that of the next 8 rows acrossRows bytes. Example: the 64
// rows of a filter tile lie in chunks of 16 bytes, all rows' first chunks, then all rows' second
// ones; then acrossDepth is 64 * 16 = 1024 and acrossRows is 128.
//
// The fields hold bytes / 16: the start address in bits 0-13, acrossDepth from bit 16 on,
// acrossRows from bit 32 on.
__device__ inline unsigned long long matrixDescriptor(void* memory, unsigned bytes, unsigned acrossDepth, unsigned acrossRows) {
  unsigned at = sharedAddress(memory) + bytes;
  return (unsigned long long)(acrossRows >> 4) << 32 | (at & 0x3ffff) >> 4 | (acrossDepth >> 4) << 16;
}

// For an operand whose columns are contiguous (MN-major), a core matrix has eight places of depth,
// each with 16 bytes of columns. acrossDepth is the distance to the next eight places of depth,
// acrossRows that to the next eight columns.

// wgmma computes d += a b in a warpgroup, with a 64 x 16 and b 16 x columns, both bfloat16 in
// shared memory. The accumulator layout, with g = lane / 4 and t = lane % 4: warp w has rows 16 w
// to 16 w + 15, and in each thread
//
//   d[4 j], d[4 j + 1]      are row 16 w + g, columns 8 j + 2 t and 8 j + 2 t + 1,
//   d[4 j + 2], d[4 j + 3]  are row 16 w + g + 8, the same columns.
// The accumulators are operands of the inline assembly one by one, since the instruction names each
// register: 32 for 64 columns, 56 for 112, 64 for 128. The predicate add, always true here, makes
// the product accumulate; the constants after it are no negation (1, 1) and K-major operands (0,
// 0).
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

// This wgmma takes a from registers, two bfloat16 numbers to a word, and b, 16 x 64, from shared
// memory with contiguous columns. Of a, lane 4 g + t of warp w has row 16 w + g, columns 2 t and 2
// t + 1, as word 0; the same columns of row 16 w + g + 8 as word 1; and the columns 8 further on as
// words 2 and 3. Like accumulators, these registers must not change before wgmmaWait.
__device__ inline void wgmma(float (&d)[32], const unsigned (&a)[4], unsigned long long b) {
  asm volatile("{ .reg .pred add; setp.ne.b32 add, %[one], 0; wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 {" POLLEN_NAMES32
               "}, {%[a0], %[a1], %[a2], %[a3]}, %[b], add, 1, 1, 1; }"
               : POLLEN_SUMS32
               : [a0] "r"(a[0]), [a1] "r"(a[1]), [a2] "r"(a[2]), [a3] "r"(a[3]), [b] "l"(b), [one] "r"(1));
}

}  // namespace pollen

#endif

namespace pollen {

// mbarrierWait waits until the phase of the given parity has completed. It traps after 8.6 to 12.9
// seconds, two to three ticks of globalTimerHigh: copies take microseconds, so a barrier that is
// still waiting then expects bytes that no copy delivers.
INLINE void mbarrierWait(MBarrier* b, int odd) {
  constexpr unsigned limit = 3;
  for (unsigned begin = 0; !mbarrierTryWait(b, odd);) {
    unsigned now = globalTimerHigh();
    if (begin == 0) begin = now;
    if (now - begin >= limit) trap();
  }
}

}  // namespace pollen
