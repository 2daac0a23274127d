// What graph/builtin.go and the end of a step launch: the constant 1, sums of gradients, a row of metrics, the step's count.
#include "philox.cuh"
#include "reduce.cuh"

template <class T>
INLINE void one(Out<T> y) {
  if (first() == 0) y.at()[0] = 1;
}

template <class T>
INLINE void fanIn(Out<T> y, In<T> a, In<T> b, int n) {
  map(y, n, [](T a, T b) { return a + b; }, a, b);
}

// record puts the sum of a metric's elements into its column of the step's row: one block.
template <class T>
INLINE void record(InOut<T> ring, In<T> values, Header header, int elements, int column, int columns, int rows) {
  double total = 0;
  for (int i = threadIdx.x; i < elements; i += blockDim.x) total += values.at()[i];
  total = blockSum(total);
  if (threadIdx.x == 0) ring.at()[(int)(stepOf(header) % rows) * columns + column] = T(total);
}

INLINE void count(InOut<unsigned long long> header) {
  if (first() == 0) header.at()[headerStep]++;
}

#define BUILTIN(T, suffix)                                                                                                               \
  KERNEL(one_fwd_##suffix, 256)(Out<T> y) { one(y); }                                                                                    \
  KERNEL(fan_in_fwd_##suffix, 256)(Out<T> y, In<T> a, In<T> b, int n) { fanIn(y, a, b, n); }                                             \
  KERNEL(record_fwd_##suffix, 256)(InOut<T> ring, In<T> values, Header header, int elements, int column, int columns, int rows) {        \
    record(ring, values, header, elements, column, columns, rows);                                                                       \
  }                                                                                                                                      \
  KERNEL(count_step_##suffix, 256)(InOut<unsigned long long> header) { count(header); }

BUILTIN(float, f32)
BUILTIN(double, f64)
