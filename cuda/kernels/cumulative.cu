// Cumulative sums along an axis, in double, and their inverse (differences); one element of a
// tensor; and the entry of a table that repeats periodically by step.
#include "philox.cuh"
#include "quad.cuh"

// cumulativeSum gives each thread one line: length elements that are inner apart.
template <class T>
INLINE void cumulativeSum(Out<T> y, In<T> x, int lines, int length, int inner, int reverse) {
  for (int line = first(); line < lines; line += step()) {
    int at = line / inner * length * inner + line % inner, stride = inner;
    if (reverse) {
      at += (length - 1) * inner;
      stride = -inner;
    }
    double total = 0;
    for (int i = 0; i < length; i++, at += stride) {
      total += x.at()[at];
      y.at()[at] = T(total);
    }
  }
}

// difference is the inverse: neighbours along the axis are subtracted, except at the end where the
// sum begins.
template <class T>
INLINE void difference(Out<T> y, In<T> x, int n, int length, int inner, int reverse) {
  int end = reverse ? length - 1 : 0, neighbour = reverse ? inner : -inner;
  for (int i = first(); i < n; i += step()) y.at()[i] = i / inner % length == end ? x.at()[i] : x.at()[i] - x.at()[i + neighbour];
}

template <class T>
INLINE void element(Out<T> y, In<T> x, int index) {
  if (first() == 0) y.at()[0] = x.at()[index];
}

// periodic reads a schedule that repeats after entries steps.
template <class T>
INLINE void periodic(Out<T> y, In<T> table, Header header, int entries) {
  if (first() == 0) y.at()[0] = table.at()[stepOf(header) % entries];
}

#define CUMULATIVE(T, suffix)                                                                                                       \
  KERNEL(cumulative_sum_fwd_##suffix, 256)(Out<T> y, In<T> x, int lines, int length, int inner, int reverse) {                      \
    cumulativeSum(y, x, lines, length, inner, reverse);                                                                             \
  }                                                                                                                                 \
  KERNEL(difference_fwd_##suffix, 256)(Out<T> y, In<T> x, int n, int length, int inner, int reverse) {                              \
    difference(y, x, n, length, inner, reverse);                                                                                    \
  }                                                                                                                                 \
  KERNEL(element_fwd_##suffix, 256)(Out<T> y, In<T> x, int index) { element(y, x, index); }                                         \
  KERNEL(periodic_fwd_##suffix, 256)(Out<T> y, In<T> table, Header header, int entries) { periodic(y, table, header, entries); }

CUMULATIVE(float, f32)
CUMULATIVE(double, f64)
