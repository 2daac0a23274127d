// Kernels of graph/builtin.go and of the end of a step: the constant 1, sums of gradients,
// conversion between float types, recording of metrics, the step counter.
#include "philox.cuh"
#include "reduce.cuh"

// one is the constant 1, the gradient of the loss with respect to itself. Like every tensor it
// lies in an arena, and is written at each step because the memory is reused for others.
template <class T>
INLINE void one(Out<T> y) {
  if (first() == 0) y.at()[0] = 1;
}

// fanIn adds the gradients of a node that has two users. A node with more users takes several
// launches, in the order of the graph: float addition is not associative, and the host adds in the
// same order.
template <class T>
INLINE void fanIn(Out<T> y, In<T> a, In<T> b, int n) {
  map(y, n, [](T a, T b) { return a + b; }, a, b);
}

// cast rounds to nearest from double to float, and is exact from float to double. It connects a
// network in float with a sampler whose parameters are in double.
template <class T, class From>
INLINE void cast(Out<T> y, In<From> x, int n) {
  map(y, n, [](From x) { return T(x); }, x);
}

// ofWarp returns all[i] in warp i, by selects, so that the array stays in registers.
template <class V>
INLINE V ofWarp(const V (&all)[16]) {
  V v = all[0];
#pragma unroll
  for (int i = 1; i < 16; i++)
    if (threadIdx.x / 32 == i) v = all[i];
  return v;
}

// count increments the chain's step, which is part of the address of its random numbers.
INLINE void count(InOut<unsigned long long> header) {
  if (first() == 0) header.at()[headerStep]++;
}

// record sums each metric's elements, one warp per metric, into its column of the step's row of the
// ring, and then increments the step counter if counts is set. It runs as one block.
template <class T>
INLINE void record(InOut<T> ring, InOut<unsigned long long> header, const In<T> (&metrics)[16], const int (&elements)[16], int first, int columns, int rows,
                   int counts) {
  // The ring has rows rows; the host reads it before the steps wrap around.
  int lane = threadIdx.x % 32, row = (int)(header.at()[headerStep] % rows), n = ofWarp(elements);
  In<T> values = ofWarp(metrics);
  double total = 0;
#pragma unroll 4
  for (int i = lane; i < n; i += 32) total += values.at()[i];
  total = warpSum(total);
  if (lane == 0) ring.at()[row * columns + first + threadIdx.x / 32] = T(total);
  if (!counts) return;
  barrier();
  count(header);
}

// Sixteen metrics are arguments by value: a kernel's parameters lie in constant memory, and an
// array of pointers in global memory would have to be uploaded whenever the plan of memory
// changes.
#define METRICS(T)                                                                                                                                \
  In<T> a0, In<T> a1, In<T> a2, In<T> a3, In<T> a4, In<T> a5, In<T> a6, In<T> a7, In<T> a8, In<T> a9, In<T> a10, In<T> a11, In<T> a12, In<T> a13, \
      In<T> a14, In<T> a15
#define ELEMENTS                                                                                                                                  \
  int n0, int n1, int n2, int n3, int n4, int n5, int n6, int n7, int n8, int n9, int n10, int n11, int n12, int n13, int n14, int n15

// next_header writes the header of the next step.
KERNEL(next_header, 32)(Out<unsigned long long> next, Header header) {
  int word = threadIdx.x;
  if (blockIdx.x == 0 && word <= headerStep) next.at()[word] = header.at()[word] + (word == headerStep ? 1 : 0);
}

#define BUILTIN(T, other, suffix)                                                                                         \
  KERNEL(one_fwd_##suffix, 256)(Out<T> y) { one(y); }                                                                     \
  KERNEL(fan_in_fwd_##suffix, 256)(Out<T> y, In<T> a, In<T> b, int n) { fanIn(y, a, b, n); }                              \
  KERNEL(cast_fwd_##suffix, 256)(Out<T> y, In<other> x, int n) { cast(y, x, n); }                                         \
  KERNEL(record_fwd_##suffix, 512)                                                                                        \
  (InOut<T> ring, InOut<unsigned long long> header, METRICS(T), ELEMENTS, int first, int columns, int rows, int counts) { \
    const In<T> values[] = {a0, a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11, a12, a13, a14, a15};                        \
    const int elements[] = {n0, n1, n2, n3, n4, n5, n6, n7, n8, n9, n10, n11, n12, n13, n14, n15};                        \
    record(ring, header, values, elements, first, columns, rows, counts);                                                 \
  }                                                                                                                       \
  KERNEL(count_step_##suffix, 256)(InOut<unsigned long long> header) { count(header); }

BUILTIN(float, double, f32)
BUILTIN(double, float, f64)
