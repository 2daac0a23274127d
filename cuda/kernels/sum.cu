// Sums and means over axes, y = scale sum of x, in double; their gradient, which gives each dout to all that were added up; and the sums
// of the tables of partial sums that other kernels leave.
#include "quad.cuh"
#include "reduce.cuh"
#include "walk.cuh"

// sum makes neighbouring sums side by side, sumRuns a sum with a block, along terms that are neighbours.
template <class T, class Y>
INLINE void sum(Out<Y> y, In<T> x, int sums, int elements, const Walk<3>& kept, const Walk<3>& summed, double scale) {
  columnSums(y, sums, elements / sums, scale, [&](int s, int t) { return (double)x.at()[kept.at(s) + summed.at(t)]; });
}

template <class T, class Y>
INLINE void sumRuns(Out<Y> y, In<T> x, int sums, int elements, const Walk<3>& kept, const Walk<3>& summed, double scale) {
  rowSums(y, sums, elements / sums, scale, [&](int s, int t) { return (double)x.at()[kept.at(s) + summed.at(t)]; });
}

template <class T>
INLINE void sumBackward(Out<T> dx, In<T> dout, int n, const Walk<6>& from, T scale) {
  for (int i = first(); i < n; i += step()) dx.at()[i] = dout.at()[from.at(i)] * scale;
}

// sumPartial adds the columns of partial [rows columns].
template <class T>
INLINE void sumPartial(Out<T> y, In<double> partial, int rows, int columns, double scale) {
  auto term = [&](int s, int t) { return partial.at()[(long long)t * columns + s]; };
  if (columns < 8)
    rowSums(y, columns, rows, scale, term);
  else
    columnSums(y, columns, rows, scale, term);
}

#define SUM_KERNEL(name, T, Y)                                                                              \
  (Out<Y> y, In<T> x, int sums, int elements, WALK3(k), WALK3(s), T scale) {                                \
    name(y, x, sums, elements, WALK3_OF(k), WALK3_OF(s), scale);                                            \
  }

#define SUM(T, suffix)                                                                                      \
  KERNEL(sum_fwd_##suffix, 256) SUM_KERNEL(sum, T, T)                                                       \
  KERNEL(sum_fwd_partial_##suffix, 256) SUM_KERNEL(sum, T, double)                                          \
  KERNEL(sum_fwd_runs_##suffix, 256) SUM_KERNEL(sumRuns, T, T)                                              \
  KERNEL(sum_fwd_runs_partial_##suffix, 256) SUM_KERNEL(sumRuns, T, double)                                 \
  KERNEL(sum_bwd_##suffix, 256)(Out<T> dx, In<T> dout, int n, WALK6(a), T scale) {                          \
    sumBackward(dx, dout, n, WALK6_OF(a), scale);                                                           \
  }                                                                                                         \
  KERNEL(sum_partial_##suffix, 256)(Out<T> y, In<double> partial, int rows, int columns, double scale) {    \
    sumPartial(y, partial, rows, columns, scale);                                                           \
  }

SUM(float, f32)
SUM(double, f64)
