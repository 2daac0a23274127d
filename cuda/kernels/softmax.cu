// Softmax and log-softmax, their gradients, and the maximum of rows. A warp processes a row, in
// double as on the host.
#include "softmax.cuh"

// With 10 classes a third of a warp's lanes work. That is cheap: the logits of a minibatch are
// few, and a warp per row keeps the reduction within registers, by shuffles.
template <class T>
INLINE void softmax(Out<T> p, In<T> logits, int batch, int classes) {
  for (int row = firstRow(); row < batch; row += rowStep()) {
    const T* z = logits.at() + (long long)row * classes;
    SoftmaxRow s = softmaxRow(z, classes);
    for (int k = threadIdx.x % 32; k < classes; k += 32) p.at()[(long long)row * classes + k] = T(s.probability(z[k]));
  }
}

// The logarithm of the sum is subtracted in double, so that log-probabilities near 0 keep their
// digits.
template <class T>
INLINE void logSoftmax(Out<T> y, In<T> logits, int batch, int classes) {
  for (int row = firstRow(); row < batch; row += rowStep()) {
    const T* z = logits.at() + (long long)row * classes;
    SoftmaxRow s = softmaxRow(z, classes);
    double shift = s.logTotal();
    for (int k = threadIdx.x % 32; k < classes; k += 32) y.at()[(long long)row * classes + k] = T((double)z[k] - s.top - shift);
  }
}

// p (dout - sum of p dout), with p recomputed from the logits
template <class T>
INLINE void softmaxBackward(Out<T> dx, In<T> dout, In<T> logits, int batch, int classes) {
  for (int row = firstRow(); row < batch; row += rowStep()) {
    long long from = (long long)row * classes;
    const T *z = logits.at() + from, *dy = dout.at() + from;
    SoftmaxRow s = softmaxRow(z, classes);
    double mean = 0;
    for (int k = threadIdx.x % 32; k < classes; k += 32) mean += s.probability(z[k]) * (double)dy[k];
    mean = warpSum(mean);
    for (int k = threadIdx.x % 32; k < classes; k += 32) dx.at()[from + k] = T(s.probability(z[k]) * ((double)dy[k] - mean));
  }
}

// dout - e^y sum of dout
template <class T>
INLINE void logSoftmaxBackward(Out<T> dx, In<T> dout, In<T> y, int batch, int classes) {
  for (int row = firstRow(); row < batch; row += rowStep()) {
    long long from = (long long)row * classes;
    double total = 0;
    for (int k = threadIdx.x % 32; k < classes; k += 32) total += dout.at()[from + k];
    total = warpSum(total);
    for (int k = threadIdx.x % 32; k < classes; k += 32) {
      dx.at()[from + k] = T((double)dout.at()[from + k] - math::exp((double)y.at()[from + k]) * total);
    }
  }
}

// rowMaximum returns each row's maximum; NaN if the row has one.
template <class T>
INLINE void rowMaximum(Out<T> y, In<T> x, int rows, int width) {
  for (int row = firstRow(); row < rows; row += rowStep()) {
    const T* z = x.at() + (long long)row * width;
    T top = z[0];
    for (int k = threadIdx.x % 32; k < width; k += 32) top = math::maximum(top, z[k]);
    top = T(warpMaximum(top));
    if (threadIdx.x % 32 == 0) y.at()[row] = top;
  }
}

#define SOFTMAX(T, suffix)                                                                                                               \
  KERNEL(softmax_fwd_##suffix, 256)(Out<T> p, In<T> logits, int batch, int classes) { softmax(p, logits, batch, classes); }              \
  KERNEL(log_softmax_fwd_##suffix, 256)(Out<T> y, In<T> logits, int batch, int classes) { logSoftmax(y, logits, batch, classes); }       \
  KERNEL(softmax_bwd_##suffix, 256)(Out<T> dx, In<T> dout, In<T> logits, int batch, int classes) {                                       \
    softmaxBackward(dx, dout, logits, batch, classes);                                                                                   \
  }                                                                                                                                      \
  KERNEL(log_softmax_bwd_##suffix, 256)(Out<T> dx, In<T> dout, In<T> y, int batch, int classes) {                                        \
    logSoftmaxBackward(dx, dout, y, batch, classes);                                                                                     \
  }                                                                                                                                      \
  KERNEL(row_maximum_fwd_##suffix, 256)(Out<T> y, In<T> x, int rows, int width) { rowMaximum(y, x, rows, width); }

SOFTMAX(float, f32)
SOFTMAX(double, f64)
