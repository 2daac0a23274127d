// Group normalisation, and single gradients of filter response normalisation, whose other kernels are
// in normalizerows.cu: with z = (x - mean)/sqrt(variance + epsilon), where the mean is 0 unless
// center is set,
//
//	y = gamma[c] z + beta[c],  dx = (dz - [center] mean dz - z mean(z dz))/sqrt(variance + epsilon) for dz = gamma[c] dout,  dgamma[c] = sum of dout z
//
// A block processes one group of one image: channels channels of width elements each. All sums are
// in double.
#include "math.cuh"
#include "reduce.cuh"

// Group is the elements that are normalised together, and their moments; inverse is 1/sqrt(variance
// + epsilon).
template <class T>
struct Group {
  const T* x;
  int size, width, firstChannel;
  double mean, inverse;

  INLINE int channel(int i) const { return firstChannel + i / width; }
};

// groupSum returns the sum of f over a block's group.
template <class F>
INLINE double groupSum(int size, F f) {
  double sum = 0;
  for (int i = threadIdx.x; i < size; i += blockDim.x) sum += f(i);
  return blockSum(sum);
}

template <class T>
INLINE Group<T> groupOf(In<T> x, int channels, int width, int allChannels, int center, T epsilon) {
  // Two passes: the mean first, then the squares around it, which does not cancel as E x^2 - (E
  // x)^2 would.
  int row = blockIdx.x, size = channels * width;
  Group<T> g = {x.at() + (long long)row * size, size, width, (int)((long long)row * channels % allChannels), 0, 0};
  if (center) g.mean = groupSum(size, [&](int i) { return (double)g.x[i]; }) / size;
  double squares = groupSum(size, [&](int i) { return (g.x[i] - g.mean) * (g.x[i] - g.mean); });
  g.inverse = 1 / math::sqrt(squares / size + (double)epsilon);
  return g;
}

// normalize sets y to gamma[c] z + beta[c].
//
// The kernels read x two or three times, once for each sum. A group of an image has often some
// tens of kilobytes, so that all reads except the first hit the cache; keeping z for the backward
// pass would cost more memory than reading x again.
template <class T>
INLINE void normalize(Out<T> y, In<T> gamma, In<T> beta, const Group<T>& g) {
  T* to = y.at() + (long long)blockIdx.x * g.size;
  for (int i = threadIdx.x; i < g.size; i += blockDim.x) {
    int channel = g.channel(i);
    double scale = gamma.at()[channel] * g.inverse;
    to[i] = T(((double)g.x[i] - g.mean) * scale + beta.at()[channel]);
  }
}

// normalizeBackward computes dx = a dout - ((x - mean) b + c) in the host's order of operations,
// which matters: in a small group everything but epsilon's contribution cancels. A group of one
// channel takes gamma out of its sums.
template <class T>
INLINE void normalizeBackward(Out<T> dx, In<T> dout, In<T> gamma, const Group<T>& g, int center) {
  const T* dy = dout.at() + (long long)blockIdx.x * g.size;
  T* to = dx.at() + (long long)blockIdx.x * g.size;
  bool single = g.size == g.width;
  double common = single ? (double)gamma.at()[g.firstChannel] : 1;
  auto dz = [&](int i) { return single ? (double)dy[i] : (double)gamma.at()[g.channel(i)] * dy[i]; };
  double total = center ? common * groupSum(g.size, dz) / g.size : 0;
  double product = common * groupSum(g.size, [&](int i) { return dz(i) * ((double)g.x[i] - g.mean); }) * g.inverse / g.size;
  double b = g.inverse * g.inverse * product, c = g.inverse * total;
  for (int i = threadIdx.x; i < g.size; i += blockDim.x) {
    double a = g.inverse * (double)gamma.at()[g.channel(i)];
    to[i] = T(a * dy[i] - (((double)g.x[i] - g.mean) * b + c));
  }
}

// normalizeBackwardScale writes the sum of dout z for each channel of each image; sum_partial then
// adds these over the images.
template <class T>
INLINE void normalizeBackwardScale(Out<double> products, In<T> dout, const Group<T>& g, int channels) {
  for (int c = 0; c < channels; c++) {
    const T *dy = dout.at() + (long long)blockIdx.x * g.size + c * g.width, *x = g.x + c * g.width;
    double product = groupSum(g.width, [&](int i) { return dy[i] * (x[i] - g.mean); });
    if (threadIdx.x == 0) products.at()[blockIdx.x * channels + c] = product * g.inverse;
  }
}

#define LAYOUT(T) int, int channels, int width, int allChannels, int center, T epsilon
#define GROUP groupOf(x, channels, width, allChannels, center, epsilon)

#define NORMALIZE(T, suffix)                                                                                                            \
  KERNEL(normalize_fwd_##suffix, 256)(Out<T> y, In<T> x, In<T> gamma, In<T> beta, LAYOUT(T)) {                                          \
    normalize(y, gamma, beta, GROUP);                                                                                                   \
  }                                                                                                                                     \
  KERNEL(normalize_bwd_input_##suffix, 256)(Out<T> dx, In<T> dout, In<T> x, In<T> gamma, LAYOUT(T)) {                                   \
    normalizeBackward(dx, dout, gamma, GROUP, center);                                                                                  \
  }                                                                                                                                     \
  KERNEL(normalize_bwd_scale_##suffix, 256)(Out<double> products, In<T> dout, In<T> x, LAYOUT(T)) {                                     \
    normalizeBackwardScale(products, dout, GROUP, channels);                                                                            \
  }

NORMALIZE(float, f32)
NORMALIZE(double, f64)
