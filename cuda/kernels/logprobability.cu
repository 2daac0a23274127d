// The log-probability of each label under softmax, y = logits[label] - ln sum exp(logits), and its
// gradient dout (onehot(label) - softmax(logits)). Rows of logits are stride apart; stride 0 means
// that all labels share one row. A warp processes a row.
#include "softmax.cuh"

template <class T>
INLINE void logProbability(Out<T> y, In<T> logits, In<int> labels, int rows, int stride, int classes) {
  for (int row = firstRow(); row < rows; row += rowStep()) {
    const T* z = logits.at() + (long long)row * stride;
    SoftmaxRow s = softmaxRow(z, classes);
    int label = labels.at()[row];
    bool known = label >= 0 && label < classes;
    if (threadIdx.x % 32 == 0) y.at()[row] = T(known ? (double)z[label] - s.top - s.logTotal() : math::nan<double>());
  }
}

// With stride 0, too, each label's gradient has its own row of d, [rows classes].
template <class T>
INLINE void logProbabilityBackward(Out<T> d, In<T> logits, In<int> labels, In<T> dout, int rows, int stride, int classes) {
  for (int row = firstRow(); row < rows; row += rowStep()) {
    const T* z = logits.at() + (long long)row * stride;
    SoftmaxRow s = softmaxRow(z, classes);
    int label = labels.at()[row];
    double scale = dout.at()[row];
    for (int k = threadIdx.x % 32; k < classes; k += 32)
      d.at()[(long long)row * classes + k] = T(((k == label ? 1 : 0) - s.probability(z[k])) * scale);
  }
}

#define LOG_PROBABILITY(T, suffix)                                                                                               \
  KERNEL(log_probability_fwd_##suffix, 256)(Out<T> y, In<T> logits, In<int> labels, int rows, int stride, int classes) {         \
    logProbability(y, logits, labels, rows, stride, classes);                                                                    \
  }                                                                                                                              \
  KERNEL(log_probability_bwd_##suffix, 256)                                                                                      \
  (Out<T> d, In<T> logits, In<int> labels, In<T> dout, int rows, int stride, int classes) {                                      \
    logProbabilityBackward(d, logits, labels, dout, rows, stride, classes);                                                      \
  }

LOG_PROBABILITY(float, f32)
LOG_PROBABILITY(double, f64)
