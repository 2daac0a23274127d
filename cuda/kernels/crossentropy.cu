// Cross-entropy: the mean of ln sum exp(logits) - logits[label] over a batch; its gradient
// (softmax(logits) - onehot(label)) dout / B; and accuracy, the fraction of rows whose largest
// logit is the label's. A warp processes a row. With few rows one block does everything, with more
// each block writes a partial sum.
#include "softmax.cuh"

// A label outside of the classes gives NaN, which the search for numbers that are not finite then
// reports.
template <class T, class Y>
INLINE void crossEntropy(Out<Y> y, In<T> logits, In<int> labels, int batch, int classes, int divisor) {
  double sum = 0;
  for (int row = firstRow(); row < batch; row += rowStep()) {
    const T* z = logits.at() + (long long)row * classes;
    SoftmaxRow s = softmaxRow(z, classes);
    int label = labels.at()[row];
    bool known = label >= 0 && label < classes;
    if (threadIdx.x % 32 == 0) sum += known ? s.top + s.logTotal() - (double)z[label] : math::nan<double>();
  }
  sum = blockSum(sum);
  if (threadIdx.x == 0) y.at()[blockIdx.x] = Y(sum / divisor);
}

// The gradient recomputes the row's softmax instead of storing it in the forward pass. A warp has
// several rows at once if there are few classes; lanes past the last row repeat it.
template <class T>
INLINE void crossEntropyBackward(Out<T> d, In<T> logits, In<int> labels, In<T> dout, int batch, int classes) {
  double scale = (double)dout.at()[0] / batch;
  int power = lanesOf(classes), lanes = 1 << power, rows = 32 >> power;
  for (int begin = firstRow() * rows; begin < batch; begin += rowStep() * rows) {
    int own = begin + (threadIdx.x % 32 >> power), row = own < batch ? own : batch - 1;
    const T* z = logits.at() + (long long)row * classes;
    T* dz = d.at() + (long long)row * classes;
    SoftmaxRow s = softmaxRow(z, classes, power);
    int label = labels.at()[row];
    for (int k = threadIdx.x & lanes - 1; k < classes && own < batch; k += lanes) {
      double p = s.probability(z[k]);
      if (sizeof(T) == 4 && p < 0x1p-64) p = 0;  // minProbability, see graph/op/crossentropy.go
      dz[k] = T((p - (k == label ? 1 : 0)) * scale);
    }
  }
}

// accuracy runs as one block, with one row per thread. The first of equal logits counts as the
// largest, and NaN never does unless it is first.
template <class T>
INLINE void accuracy(Out<T> y, In<T> logits, In<int> labels, int batch, int classes) {
  int right = 0;
  for (int row = threadIdx.x; row < batch; row += blockDim.x) {
    const T* z = logits.at() + (long long)row * classes;
    T largest = z[0];
    int best = 0;
    for (int k = 1; k < classes; k++) {
      T v = z[k];
      if (v > largest) {
        largest = v;
        best = k;
      }
    }
    if (best == labels.at()[row]) right++;
  }
  right = blockSum(right);
  if (threadIdx.x == 0) y.at()[0] = T(right) / T(batch);
}

#define CROSS_ENTROPY(T, suffix)                                                                                                     \
  KERNEL(cross_entropy_fwd_##suffix, 1024)(Out<T> y, In<T> logits, In<int> labels, int batch, int classes) {                         \
    crossEntropy(y, logits, labels, batch, classes, batch);                                                                          \
  }                                                                                                                                  \
  KERNEL(cross_entropy_partial_##suffix, 256)(Out<double> partial, In<T> logits, In<int> labels, int batch, int classes) {           \
    crossEntropy(partial, logits, labels, batch, classes, 1);                                                                        \
  }                                                                                                                                  \
  KERNEL(cross_entropy_bwd_##suffix, 256)(Out<T> d, In<T> logits, In<int> labels, In<T> dout, int batch, int classes) {              \
    crossEntropyBackward(d, logits, labels, dout, batch, classes);                                                                   \
  }                                                                                                                                  \
  KERNEL(accuracy_fwd_##suffix, 1024)(Out<T> y, In<T> logits, In<int> labels, int batch, int classes) {                              \
    accuracy(y, logits, labels, batch, classes);                                                                                     \
  }

CROSS_ENTROPY(float, f32)
CROSS_ENTROPY(double, f64)
