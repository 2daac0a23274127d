// Sums and means over axes, y = scale sum of x, in double; their gradient, which broadcasts dout to
// all summed elements; the first two moments of channels; and the sums of tables of partial sums
// that other kernels write.
#include "quad.cuh"
#include "reduce.cuh"
#include "rows.cuh"
#include "layout.cuh"

// sum computes neighbouring sums in neighbouring lanes; sumRuns computes each sum by a block, for
// terms that are contiguous.
template <class T, class Y>
INLINE void sum(Out<Y> y, In<T> x, int sums, int elements, const Layout<3>& kept, const Layout<3>& summed, double scale) {
  columnSums(y, sums, elements / sums, scale, [&](int s, int t) { return (double)x.at()[kept.at(s) + summed.at(t)]; });
}

template <class T, class Y>
INLINE void sumRuns(Out<Y> y, In<T> x, int sums, int elements, const Layout<3>& kept, const Layout<3>& summed, double scale) {
  rowSums(y, sums, elements / sums, scale, [&](int s, int t) { return (double)x.at()[kept.at(s) + summed.at(t)]; });
}

// sumWarps computes each sum by a warp.
template <class T>
INLINE void sumWarps(Out<T> y, In<T> x, int sums, int elements, const Layout<3>& kept, const Layout<3>& summed, double scale) {
  int s = first() / 32, terms = elements / sums;
  if (s >= sums) return;
  const T* from = x.at() + kept.at(s);
  double total = 0;
#pragma unroll 4
  for (int t = threadIdx.x % 32; t < terms; t += 32) total += from[summed.at(t)];
  total = warpSum(total);
  if (threadIdx.x % 32 == 0) y.at()[s] = T(total * scale);
}

// from has stride 0 along the summed axes: each of their elements gets the same dout.
template <class T>
INLINE void sumBackward(Out<T> dx, In<T> dout, int n, const Layout<6>& from, T scale) {
  for (int i = first(); i < n; i += step()) dx.at()[i] = dout.at()[from.at(i)] * scale;
}

// sumPartial adds the rows of partial [rows columns], one sum per column.
template <class T>
INLINE void sumPartial(Out<T> y, In<double> partial, int rows, int columns, double scale) {
  auto term = [&](int s, int t) { return partial.at()[(long long)t * columns + s]; };
  if (columns < 8)
    rowSums(y, columns, rows, scale, term);
  else
    columnSums(y, columns, rows, scale, term);
}

// sumRows adds the rows of x [rows columns]; a block processes eight columns at a time, with 32
// threads for each of them.
template <class T>
INLINE void sumRows(Out<T> y, In<T> x, BlockRange columns, int rows) {
  constexpr int together = 8, parts = 32, warps = together * parts / 32;
  SHARED(double, sums, warps * together);
  // 256 threads are 8 columns by 32 parts of the rows: eight lanes read 8 neighbouring columns, a
  // sector of 32 bytes in float.
  int i = threadIdx.x % together, lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  for (int begin = columns.block * together; begin < columns; begin += columns.blocks * together) {
    double total = 0;
    if (begin + i < columns) {
#pragma unroll 8
      for (int row = threadIdx.x / together; row < rows; row += parts) total += x.at()[(long long)row * columns + begin + i];
    }
#pragma unroll
    for (int mask = together; mask < 32; mask *= 2) total += shuffleXor(total, mask);
    barrier();
    if (lane < together) sums[warp * together + lane] = total;
    barrier();
    if (threadIdx.x >= together || begin + i >= columns) continue;
#pragma unroll
    for (int w = 1; w < warps; w++) total += sums[w * together + i];
    y.at()[begin + i] = T(total);
  }
}

// moments writes the mean of each plane of x [images channels, width] and the mean of its squares
// to y [images, 2 channels]: first the means of all channels of an image, then those of their
// squares. A warp reads a plane once, and adds in double.
template <class T>
INLINE void moments(Out<T> y, In<T> x, int planes, int channels, int width) {
  for (int plane = first() / 32; plane < planes; plane += step() / 32) {
    const T* from = x.at() + (long long)plane * width;
    double sum = 0, squares = 0;
#pragma unroll 4
    for (int i = threadIdx.x % 32; i < width; i += 32) {
      double v = from[i];
      sum += v;
      squares += v * v;
    }
    sum = warpSum(sum);
    squares = warpSum(squares);
    if (threadIdx.x % 32 > 0) continue;
    T* to = y.at() + (long long)(plane / channels) * 2 * channels + plane % channels;
    to[0] = T(sum / width);
    to[channels] = T(squares / width);
  }
}

// The host chooses the variant by the strides (graph/op/grids.go): fwd if neighbouring sums are
// neighbours in memory, runs if the terms of a sum are, warps if these are few, partial if there are
// too few sums to occupy the GPU.
#define SUM_KERNEL(name, T, Y)                                                                              \
  (Out<Y> y, In<T> x, int sums, int elements, LAYOUT3(k), LAYOUT3(s), T scale) {                                \
    name(y, x, sums, elements, LAYOUT3_OF(k), LAYOUT3_OF(s), scale);                                            \
  }

#define SUM(T, suffix)                                                                                      \
  KERNEL(sum_fwd_##suffix, 256) SUM_KERNEL(sum, T, T)                                                       \
  KERNEL(sum_fwd_partial_##suffix, 256) SUM_KERNEL(sum, T, double)                                          \
  KERNEL(sum_fwd_runs_##suffix, 256) SUM_KERNEL(sumRuns, T, T)                                              \
  KERNEL(sum_fwd_warps_##suffix, 256) SUM_KERNEL(sumWarps, T, T)                                            \
  KERNEL(sum_fwd_runs_partial_##suffix, 256) SUM_KERNEL(sumRuns, T, double)                                 \
  KERNEL(sum_bwd_##suffix, 256)(Out<T> dx, In<T> dout, int n, LAYOUT6(a), T scale) {                          \
    sumBackward(dx, dout, n, LAYOUT6_OF(a), scale);                                                           \
  }                                                                                                         \
  KERNEL(moments_fwd_##suffix, 256)(Out<T> y, In<T> x, int planes, int channels, int width) {               \
    moments(y, x, planes, channels, width);                                                                 \
  }                                                                                                         \
  KERNEL(sum_partial_##suffix, 256)(Out<T> y, In<double> partial, int rows, int columns, double scale) {    \
    sumPartial(y, partial, rows, columns, scale);                                                           \
  }

// ROWS defines the kernel that sums several tables (rows.cuh).
#define ROWS(T, suffix)                                                                                             \
  INLINE void sum_rows_##suffix##_row(Out<T> y, In<T> x, BlockRange columns, int rows) { sumRows(y, x, columns, rows); } \
  KERNEL(sum_rows_##suffix, 256)(decltype(rowsOf(sum_rows_##suffix##_row)) rows) {                                  \
    rows.run([](auto... a) INLINED { sum_rows_##suffix##_row(a...); });                                             \
  }

SUM(float, f32)
SUM(double, f64)
ROWS(float, f32)
ROWS(double, f64)
