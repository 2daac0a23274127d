// Products of a warpgroup, of matrices that a bulk copy fetches: a correct kernel, and some with
// one mistake each. With ones as operands each sum is 17.
#include "hopper.cuh"

enum Mistake { none, noFence, noCommit, noGroupWait, noCopyWait, noOrder, noBarrier, tooEarly, twoOperands, swizzled, tooManyBytes, trapped };

template <Mistake mistake>
INLINE void grouped(float* y, const float* x, int n) {
  DYNAMIC_SHARED(AlignedShared, memory);
  constexpr int bytes = 4096;
  auto* copied = (MBarrier*)((char*)memory + bytes);
  if (threadIdx.x == 0) {
    mbarrierInit(copied, 1);
    if (mistake != noOrder) fenceProxyAsync();
  }
  if (mistake != noBarrier) barrier();
  if (threadIdx.x == (mistake == noBarrier ? 127 : 0)) {
    mbarrierArriveExpectTx(copied, mistake == tooManyBytes ? bytes + 16 : bytes);
    copyAsyncBulk(memory, x, bytes, copied);
  }
  if (mistake != noCopyWait) mbarrierWait(copied, 0);
  if (mistake == trapped && threadIdx.x == 3) trap();
  float d[32];
  for (int i = 0; i < 32; i++) d[i] = 1;
  if (mistake != noFence) wgmmaFence();
  auto a = matrixDescriptor(memory, mistake == twoOperands ? threadIdx.x / 64 * 16 : 0, 1024, 128);
  wgmma(d, a | (mistake == swizzled ? 1ull << 62 : 0), matrixDescriptor(memory, 2048, 1024, 128));
  if (mistake != noCommit) wgmmaCommit();
  if (mistake == tooEarly && threadIdx.x == 0) {
    mbarrierArriveExpectTx(copied, bytes);
    copyAsyncBulk(memory, x, bytes, copied);
  }
  if (mistake != noGroupWait) wgmmaWait<0>();
  bool right = true;
  for (int i = 0; i < 32; i++) right &= d[i] == 17;
  if (!right && threadIdx.x == 5) barrier();
  if (first() < n) y[first()] = d[0];
}

#define GROUPED(name, mistake) \
  KERNEL(name, 128)(Out<float> y, In<float> x, int n) { grouped<mistake>(y.at(), x.at(), n); }

GROUPED(grouped_f32, none)
GROUPED(grouped_no_fence_f32, noFence)
GROUPED(grouped_no_commit_f32, noCommit)
GROUPED(grouped_no_wait_f32, noGroupWait)
GROUPED(grouped_no_copy_wait_f32, noCopyWait)
GROUPED(grouped_no_order_f32, noOrder)
GROUPED(grouped_no_barrier_f32, noBarrier)
GROUPED(grouped_too_early_f32, tooEarly)
GROUPED(grouped_two_operands_f32, twoOperands)
GROUPED(grouped_swizzled_f32, swizzled)
GROUPED(grouped_too_many_bytes_f32, tooManyBytes)
GROUPED(grouped_trapped_f32, trapped)
