// Losses that are sums over the elements of a prediction and a target, divided by the batch size,
// in double; and their gradients by either. With few elements one block does everything, with more
// each block writes a partial sum.
#include "math.cuh"
#include "quad.cuh"
#include "reduce.cuh"

// A loss is a struct of three static functions, in double for either program type. NaN is the
// value for a target outside of the loss's range: it reaches the metrics, and the run stops with
// an error that names the step.

// (p - t)^2 / 2
struct SquaredError {
  INLINE static double value(double p, double t) { return (p - t) * (p - t) / 2; }
  INLINE static double byPrediction(double p, double t) { return p - t; }
  INLINE static double byTarget(double p, double t) { return t - p; }
};

// softplus(p) - t p, for a target in [0, 1]
struct BernoulliLogits {
  INLINE static double value(double p, double t) { return t >= 0 && t <= 1 ? math::softplus(p) - t * p : math::nan<double>(); }
  INLINE static double byPrediction(double p, double t) { return math::sigmoid(p) - t; }
  INLINE static double byTarget(double p, double) { return -p; }
};

// divisor is the batch size for the final value, and 1 for partial sums.
template <class L, class T, class Y>
INLINE void likelihood(Out<Y> y, In<T> prediction, In<T> target, int batch, int width, int divisor) {
  double sum = 0;
  for (int i = first(); i < batch * width; i += step()) sum += L::value(prediction.at()[i], target.at()[i]);
  sum = blockSum(sum);
  if (threadIdx.x == 0) y.at()[blockIdx.x] = Y(sum / divisor);
}

// The gradient is elementwise, scaled by the gradient dout of the loss, a single number that all
// threads read from the same address.
template <class L, class T>
INLINE void likelihoodBackward(Out<T> d, In<T> prediction, In<T> target, In<T> dout, int n, int batch, int ofTarget) {
  double scale = (double)dout.at()[0] / batch;
  map(d, n, [=](T p, T t) { return T(scale * (ofTarget ? L::byTarget(p, t) : L::byPrediction(p, t))); }, prediction, target);
}

#define LIKELIHOOD(stem, L, T, suffix)                                                                                                  \
  KERNEL(stem##_fwd_##suffix, 1024)(Out<T> y, In<T> prediction, In<T> target, int batch, int width) {                                   \
    likelihood<L>(y, prediction, target, batch, width, batch);                                                                          \
  }                                                                                                                                     \
  KERNEL(stem##_partial_##suffix, 256)(Out<double> partial, In<T> prediction, In<T> target, int batch, int width) {                     \
    likelihood<L>(partial, prediction, target, batch, width, 1);                                                                        \
  }                                                                                                                                     \
  KERNEL(stem##_bwd_##suffix, 256)(Out<T> d, In<T> prediction, In<T> target, In<T> dout, int n, int batch, int ofTarget) {              \
    likelihoodBackward<L>(d, prediction, target, dout, n, batch, ofTarget);                                                             \
  }

LIKELIHOOD(squared_error, SquaredError, float, f32)
LIKELIHOOD(squared_error, SquaredError, double, f64)
LIKELIHOOD(bernoulli_logits, BernoulliLogits, float, f32)
LIKELIHOOD(bernoulli_logits, BernoulliLogits, double, f64)
