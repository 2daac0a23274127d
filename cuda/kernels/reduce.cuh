// Sums, made in double, in an order that the launch's grid alone fixes, which the shapes alone fix (graph/op/grids.go).
//
// A kernel of few sums of many terms is started with gridDim.y parts: part p of each sum goes to row p of a table of doubles, whose
// columns sum_partial (sum.cu) then adds.
#pragma once
#include "pollen.cuh"

namespace pollen {

// warpSum is the sum of the warp's values, in all its lanes.
template <class T>
INLINE T warpSum(T v) {
#pragma unroll
  for (int mask = 16; mask > 0; mask >>= 1) v += shuffleXor(v, mask);
  return v;
}

// warpMaximum is the warp's largest value, or one that is not a number.
template <class T>
INLINE T warpMaximum(T v) {
#pragma unroll
  for (int mask = 16; mask > 0; mask >>= 1) {
    T other = shuffleXor(v, mask);
    v = v != v || v > other ? v : other;
  }
  return v;
}

// blockSumAs is the sum of the block's values, in all its threads: a warp's in their type, the warps' in another. The block is whole warps.
template <class Total, class T>
INLINE Total blockSumAs(T v) {
  Total total = warpSum(v);
  if (blockDim.x <= 32) return total;
  SHARED(Total, sums, 32);
  barrier();  // a sum before this one may still be read
  if (threadIdx.x % 32 == 0) sums[threadIdx.x / 32] = total;
  barrier();
  int lane = threadIdx.x % 32;
  return warpSum(lane < (int)(blockDim.x / 32) ? sums[lane] : Total(0));
}

template <class T>
INLINE T blockSum(T v) {
  return blockSumAs<T>(v);
}

// once is what f gives the block's first thread, for all of them, in shared memory. A call is made once.
template <class V, class F>
INLINE const V& once(F f) {
  SHARED(V, value, 1);
  if (threadIdx.x == 0) value[0] = f();
  barrier();
  return value[0];
}

// again is a value in shared memory, which is read there each time instead of lying in registers beside a loop.
template <class V>
INLINE const V& reload(const V& v) {
  return (&v)[opaque(0)];
}

// part is where part blockIdx.y of a count begins.
INLINE int part(int count, unsigned number) { return (int)((long long)count * number / gridDim.y); }

// rowSums makes sums of f(s, t) over the terms t below terms, a block for each s below sums.
template <class Y, class F>
INLINE void rowSums(Out<Y> y, int sums, int terms, double scale, F f) {
  int s = blockIdx.x, end = part(terms, blockIdx.y + 1);
  double total = 0;
#pragma unroll 4
  for (int t = part(terms, blockIdx.y) + threadIdx.x; t < end; t += blockDim.x) total += f(s, t);
  total = blockSum(total);
  if (threadIdx.x == 0) y.at()[blockIdx.y * sums + s] = Y(total * scale);
}

constexpr int columnThreads = 256;

// columnSums does the same where f(s, t) and f(s + 1, t) are neighbours in memory: a block makes 32 sums, each of its warps a share of them.
template <class Y, class F>
INLINE void columnSums(Out<Y> y, int sums, int terms, double scale, F f) {
  constexpr int warps = columnThreads / 32;
  SHARED(double, shares, columnThreads);
  int lane = threadIdx.x % 32, warp = threadIdx.x / 32, s = 32 * blockIdx.x + lane, end = part(terms, blockIdx.y + 1);
  double total = 0;
  if (s < sums) {
#pragma unroll 4
    for (int t = part(terms, blockIdx.y) + warp; t < end; t += warps) total += f(s, t);
  }
  shares[threadIdx.x] = total;
  barrier();
  if (warp > 0 || s >= sums) return;
  for (int other = 1; other < warps; other++) total += shares[32 * other + lane];
  y.at()[blockIdx.y * sums + s] = Y(total * scale);
}

}  // namespace pollen
