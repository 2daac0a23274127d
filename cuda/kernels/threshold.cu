// The thresholded linear unit, y[b c ...] = max(x[b c ...], tau[c]); its gradient by x, dx = dout
// where y > tau else 0; and by tau, the sum of dout - dx over all axes but the channels'.
#include "channels.cuh"
#include "math.cuh"

template <class T>
INLINE void thresholdForward(Out<T> y, In<T> x, In<T> tau, int n, int channels, int width) {
  const T* bounds = tau.at();
  mapChannels(y, n, channels, width, [=](int channel, T x) { return math::maximum(x, bounds[channel]); }, x);
}

template <class T>
INLINE void thresholdBackward(Out<T> dx, In<T> dout, In<T> y, In<T> tau, int n, int channels, int width) {
  const T* bounds = tau.at();
  mapChannels(dx, n, channels, width, [=](int channel, T dout, T y) { return y > bounds[channel] ? dout : T(0); }, dout, y);
}

// thresholdBackwardBound sums what thresholdBackward did not pass on. It reads dx, which is already
// there, instead of comparing y with tau again.
template <class T, class Y>
INLINE void thresholdBackwardBound(Out<Y> dtau, In<T> dout, In<T> dx, int n, int channels, int width) {
  const T *all = dout.at(), *passed = dx.at();
  channelSums(dtau, n, channels, width, [=](int i, auto neighbours) INLINED { return sumOf(all, i, neighbours) - sumOf(passed, i, neighbours); });
}

#define THRESHOLD(T, suffix)                                                                                                            \
  KERNEL(threshold_fwd_##suffix, 256)(Out<T> y, In<T> x, In<T> tau, int n, int channels, int width) {                                   \
    thresholdForward(y, x, tau, n, channels, width);                                                                                    \
  }                                                                                                                                     \
  KERNEL(threshold_bwd_##suffix, 256)(Out<T> dx, In<T> dout, In<T> y, In<T> tau, int n, int channels, int width) {                      \
    thresholdBackward(dx, dout, y, tau, n, channels, width);                                                                            \
  }                                                                                                                                     \
  KERNEL(threshold_bwd_bound_##suffix, 256)(Out<T> dtau, In<T> dout, In<T> dx, int n, int channels, int width) {                        \
    thresholdBackwardBound(dtau, dout, dx, n, channels, width);                                                                         \
  }                                                                                                                                     \
  KERNEL(threshold_bwd_bound_partial_##suffix, 256)(Out<double> partial, In<T> dout, In<T> dx, int n, int channels, int width) {        \
    thresholdBackwardBound(partial, dout, dx, n, channels, width);                                                                      \
  }

THRESHOLD(float, f32)
THRESHOLD(double, f64)
