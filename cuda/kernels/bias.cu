// Adds a bias per channel, y[b c ...] = x[b c ...] + bias[c]; its gradient is the sum over all
// other axes.
#include "channels.cuh"

// A pass over memory: 8 bytes of traffic per element in float, and one addition. It therefore
// exists only for a bias that no product has taken over (conv2d_bias_fwd, matmul_bias_fwd).
template <class T>
INLINE void biasForward(Out<T> y, In<T> x, In<T> bias, int n, int channels, int width) {
  const T* b = bias.at();
  mapChannels(y, n, channels, width, [=](int channel, T x) { return x + b[channel]; }, x);
}

// Y is T for the final sums, and double for partial ones, which sum_partial adds.
template <class T, class Y>
INLINE void biasBackward(Out<Y> db, In<T> dout, int n, int channels, int width) {
  const T* d = dout.at();
  channelSums(db, n, channels, width, [=](int i, auto neighbours) { return sumOf(d, i, neighbours); });
}

#define BIAS(T, suffix)                                                                                                          \
  KERNEL(bias_fwd_##suffix, 256)(Out<T> y, In<T> x, In<T> bias, int n, int channels, int width) {                                \
    biasForward(y, x, bias, n, channels, width);                                                                                 \
  }                                                                                                                              \
  KERNEL(bias_bwd_##suffix, 256)(Out<T> db, In<T> dout, int n, int channels, int width) {                                        \
    biasBackward(db, dout, n, channels, width);                                                                                  \
  }                                                                                                                              \
  KERNEL(bias_bwd_partial_##suffix, 256)(Out<double> partial, In<T> dout, int n, int channels, int width) {                      \
    biasBackward(partial, dout, n, channels, width);                                                                             \
  }

BIAS(float, f32)
BIAS(double, f64)
