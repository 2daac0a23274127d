// Sums in double, in an order that depends only on the launch's grid, which the shapes determine
// (graph/op/grids.go).
//
// A kernel with few sums of many terms is launched with gridDim.y parts: part p of each sum goes to
// row p of a table of doubles, whose columns sum_partial (sum.cu) adds.
#pragma once
#include "pollen.cuh"

namespace pollen {

// warpSum returns the sum over the warp, in all lanes: a butterfly of five exchanges.
//
// All sums have a fixed order: float addition is not associative, and atomics would add in the
// order in which blocks happen to finish, with other bits at each run. Double has 29 more bits
// than float, so that the error of a sum of a million floats stays below a float's last digit.
template <class T>
INLINE T warpSum(T v) {
#pragma unroll
  for (int mask = 16; mask > 0; mask >>= 1) v += shuffleXor(v, mask);
  return v;
}

// warpMaximum returns the warp's largest value, or NaN if a lane has one.
template <class T>
INLINE T warpMaximum(T v) {
#pragma unroll
  for (int mask = 16; mask > 0; mask >>= 1) {
    T other = shuffleXor(v, mask);
    v = v != v || v > other ? v : other;
  }
  return v;
}

// reduceScatter adds count sums across the lanes of a warp that differ in the bits from, from / 2,
// ..., to, and leaves each lane an equal part of the totals, at least one. With 32 sums and all
// five bits, lane l gets total l. A lane's totals begin at (its bits from..to) * count / (2 from /
// to). The order of each sum does not depend on count.
//
// The usual reduction leaves each total in all lanes, and takes five exchanges per sum.
// reduceScatter halves the number of sums at each exchange: 32 sums take 31 exchanges instead of
// 160.
template <int count, int from, int to>
INLINE void reduceScatter(float* v) {
  if constexpr (count > 1) {
    bool upper = threadIdx.x & from;
#pragma unroll
    for (int i = 0; i < count / 2; i++) {
      float low = v[i], high = v[i + count / 2], give = upper ? low : high;
      v[i] = (upper ? high : low) + shuffleXor(give, from);
    }
  } else {
    v[0] += shuffleXor(v[0], from);
  }
  if constexpr (from > to) reduceScatter<(count > 1 ? count / 2 : 1), from / 2, to>(v);
}

// blockSumAs returns the sum over the block, in all threads: within a warp in type T, across warps
// in Total. The block must consist of whole warps.
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

// once calls f in the block's first thread and returns the result to all of them, in shared memory.
// Each call site has its own variable and may run only once.
template <class V, class F>
INLINE const V& once(F f) {
  SHARED(V, value, 1);
  if (threadIdx.x == 0) value[0] = f();
  barrier();
  return value[0];
}

// reload reads a value from shared memory at each use, where the compiler would keep it in
// registers during a loop.
template <class V>
INLINE const V& reload(const V& v) {
  return (&v)[opaque(0)];
}

// part returns where part number begins when count terms are split into gridDim.y parts.
INLINE int part(int count, unsigned number) { return (int)((long long)count * number / gridDim.y); }

// rowSums computes the sum of f(s, t) over the terms t < terms, for each s < sums, one block per
// sum.
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

// columnSumsTo does the same if f(s, t) and f(s + 1, t) are neighbours in memory: a block computes
// 32 sums, and each of its warps a part of their terms. It calls write(s, sum).
template <class F, class W>
INLINE void columnSumsTo(int sums, int terms, F f, W write) {
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
  // The first warp adds the others' sums in order of the warps.
  for (int other = 1; other < warps; other++) total += shares[32 * other + lane];
  write(s, total);
}

// columnSums does this for sums times scale.
template <class Y, class F>
INLINE void columnSums(Out<Y> y, int sums, int terms, double scale, F f) {
  columnSumsTo(sums, terms, f, [&](int s, double total) INLINED { y.at()[blockIdx.y * sums + s] = Y(total * scale); });
}

}  // namespace pollen
