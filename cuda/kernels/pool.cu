// Pooling over windows of R x S elements: x [planes H W] -> y [planes P Q]. The gradients gather
// instead of scatter: a thread computes one element of dx from all windows that cover it, row by
// row, so no two threads write to one address and the order of sums is fixed.
#include "product.cuh"
#include "strips.cuh"

namespace {

// Pool is the shape, in the notation of package graph/op.
struct Pool {
  int planes, H, W, P, Q, R, S, strideH, strideW, padH, padW;
};

// Range is the half-open interval [lo, hi).
struct Range {
  int lo, hi;
};

// covered returns the elements of an axis that window i covers.
__device__ inline Range covered(int i, int stride, int pad, int taps, int size) {
  int lo = i * stride - pad, hi = lo + taps;
  return {lo < 0 ? 0 : lo, hi > size ? size : hi};
}

// covering returns the windows of an axis that cover element h.
__device__ inline Range covering(int h, int stride, int pad, int taps, int windows) {
  // Windows i with i stride - pad <= h < i stride - pad + taps. The + stride rounds the division
  // up.
  int lo = h + pad - taps + stride, hi = (h + pad) / stride + 1;
  return {lo < 0 ? 0 : lo / stride, hi > windows ? windows : hi};
}

// Window is the part of a plane that y's element (i, j) covers.
struct Window {
  Range rows, columns;

  __device__ Window(const Pool& p, int i, int j) : rows(covered(i, p.strideH, p.padH, p.R, p.H)), columns(covered(j, p.strideW, p.padW, p.S, p.W)) {}
  __device__ int size() const { return (rows.hi - rows.lo) * (columns.hi - columns.lo); }
};

// maximum returns the position of a window's first maximum in reading order, and stores its value,
// which is NaN if the window has a NaN.
//
// A window overlaps its neighbours if the stride is smaller than its size. Each thread reads its
// window from global memory all the same: the overlap is in the cache, and shared memory would
// cost two barriers per tile.
template <class T>
__device__ inline int maximum(const T* plane, const Window& window, int width, T* value) {
  int at = window.rows.lo * width + window.columns.lo;
  T best = plane[at];
  for (int h = window.rows.lo; h < window.rows.hi; h++) {
    for (int w = window.columns.lo; w < window.columns.hi; w++) {
      T v = plane[h * width + w];
      if (v > best) at = h * width + w;
      if (v > best || v != v) best = v;
    }
  }
  *value = best;
  return at;
}

template <class T>
__device__ void maxForward(T* y, const T* x, Pool p) {
  for (int i = first(); i < p.planes * p.P * p.Q; i += step()) {
    int line = i / p.Q, plane = line / p.P;
    T best;
    maximum(x + plane * p.H * p.W, Window(p, line - plane * p.P, i - line * p.Q), p.W, &best);
    y[i] = best;
  }
}

// maxReLUForward is max-pooling followed by a ReLU. NaN stays NaN.
template <class T>
__device__ void maxReLUForward(T* y, const T* x, Pool p) {
  maxForward(y, x, p);
  for (int i = first(); i < p.planes * p.P * p.Q; i += step())
    if (y[i] <= 0) y[i] = 0;
}

template <class T>
__device__ void averageForward(T* y, const T* x, Pool p) {
  for (int i = first(); i < p.planes * p.P * p.Q; i += step()) {
    int line = i / p.Q, plane = line / p.P;
    Window window(p, line - plane * p.P, i - line * p.Q);
    const T* from = x + plane * p.H * p.W;
    T sum = 0;
    for (int h = window.rows.lo; h < window.rows.hi; h++)
      for (int w = window.columns.lo; w < window.columns.hi; w++) sum += from[h * p.W + w];
    y[i] = sum / T(window.size());
  }
}

// gather sets each element of dx to the sum of contribution(plane, element, i, j) over the windows
// (i, j) that cover it.
template <class T, class Contribution>
__device__ void gather(T* dx, const Pool& p, Contribution contribution) {
  for (int i = first(); i < p.planes * p.H * p.W; i += step()) {
    int line = i / p.W, plane = line / p.H, h = line - plane * p.H, w = i - line * p.W;
    Range rows = covering(h, p.strideH, p.padH, p.R, p.P), columns = covering(w, p.strideW, p.padW, p.S, p.Q);
    T sum = 0;
    for (int r = rows.lo; r < rows.hi; r++)
      for (int c = columns.lo; c < columns.hi; c++) sum += contribution(plane, h * p.W + w, r, c);
    dx[i] = sum;
  }
}

// MaxContribution passes a window's gradient to its first maximum; with relu, only if that is above
// 0.
template <class T, bool relu>
struct MaxContribution {
  const T *dout, *x;
  Pool p;

  __device__ T operator()(int plane, int element, int i, int j) const {
    T best;
    const T* from = x + plane * p.H * p.W;
    int at = maximum(from, Window(p, i, j), p.W, &best);
    return at == element && (!relu || from[at] > 0) ? dout[(plane * p.P + i) * p.Q + j] : T(0);
  }
};

// First is the first maximum of a window, of the elements before the first NaN: element number at,
// or none if none of them is above -infinity.
struct First {
  float best = -__builtin_inff();
  int at = -1;
  bool stopped = false;

  __device__ inline void add(int number, float v) {
    stopped |= v != v;
    bool more = !stopped && v > best;
    at = more ? number : at;
    best = more ? v : best;
  }
};

// maxBackwardHalves is the gradient for windows of 3 x 3 with stride 2, which overlap. Found one by
// one for each element, a window's maximum would be searched for nine times; here a thread does so
// once for the four elements of a pair of rows and columns. Row 2 i + u of the padded image is row u
// of window i, and for u = 0 also row 2 of window i - 1; so with columns.
template <bool relu>
__device__ inline void maxBackwardHalves(float* dx, const float* dout, const float* x, const Pool& p) {
  int down = (pairs(p.H, p.padH) + stripPairs - 1) / stripPairs;
  unsigned across = pairs(p.W, p.padW), thread = first();
  if (thread >= p.planes * down * across) return;
  Place place(thread, across, down);
  int i = firstPair(p.padH) + place.strip * stripPairs, j = firstPair(p.padW) + place.column, top = 2 * (i - 1) - p.padH, left = 2 * (j - 1) - p.padW;
  const float *from = x + (long long)place.plane * p.H * p.W, *gradient = dout + (long long)place.plane * p.P * p.Q;
  float sums[stripPairs + 2][2][2] = {}, v[2 * stripPairs + 3][5], g[stripPairs + 1][2];  // of pairs i - 1 to i + stripPairs
#pragma unroll
  for (int t = 0; t < 2 * stripPairs + 3; t++) {
    loadRow(v[t], from, top + t, left, p.H, p.W);
#pragma unroll
    for (int s = 0; s < 5; s++)
      if ((unsigned)(top + t) >= (unsigned)p.H || (unsigned)(left + s) >= (unsigned)p.W) v[t][s] = -__builtin_inff();
  }
#pragma unroll
  for (int t = 0; t < stripPairs + 1; t++) loadRow(g[t], gradient, i - 1 + t, j - 1, p.P, p.Q);
#pragma unroll
  for (int t = 0; t < stripPairs + 1; t++)
#pragma unroll
    for (int side = 0; side < 2; side++) {  // windows (i - 1 + t, j - 1) and (i - 1 + t, j)
      First window;
#pragma unroll
      for (int r = 0; r < 3; r++)
#pragma unroll
        for (int s = 0; s < 3; s++) window.add(3 * r + s, v[2 * t + r][2 * side + s]);
      // Without a maximum, it is the first element in the image.
      int at = window.at < 0 ? 3 * (top + 2 * t < 0 ? -(top + 2 * t) : 0) + (left + 2 * side < 0 ? -(left + 2 * side) : 0) : window.at;
      bool passes = !relu || window.best > 0;
#pragma unroll
      for (int r = 0; r < 3; r++)
#pragma unroll
        for (int s = 2 - 2 * side; s < (side ? 2 : 3); s++)
          sums[t + r / 2][r % 2][s % 2] += passes && at == 3 * r + s ? g[t][side] : 0.0f;
    }
  float* to = dx + (long long)place.plane * p.H * p.W;
#pragma unroll
  for (int t = 1; t <= stripPairs; t++)
#pragma unroll
    for (int u = 0; u < 2; u++) {
      int row = top + 2 * t + u, column = left + 2;
      if ((unsigned)row >= (unsigned)p.H) continue;
      if (column >= 0) to[row * p.W + column] = sums[t][u][0];
      if (column + 1 < p.W) to[row * p.W + column + 1] = sums[t][u][1];
    }
}

// quad returns the upper pair of elements of window i, where windows are adjacent 2 x 2 ones, Q to
// a row; the lower pair is Q pairs further on.
template <class T, class Pair>
__device__ inline Pair* quad(T* x, int i, int Q) {
  return (Pair*)(x + 4 * i - 2 * (i % Q));
}

// placesForward stores the argmax of each window, 0 to 3 in reading order, plus noMaximum unless
// the maximum is above 0.
template <class T>
__device__ void placesForward(unsigned char* places, const T* x, int windows, int Q) {
  for (int i = first(); i < windows; i += step()) {
    auto from = quad<const T, const Vector<T, 2>>(x, i, Q);
    T window[] = {from[0].v[0], from[0].v[1], from[Q].v[0], from[Q].v[1]};
    Maximum<T> m(window);
    places[i] = m.at + (m.found > 0 ? 0 : noMaximum);
  }
}

// placesBackward is the gradient of max-pooling from stored argmaxes; with relu, only maxima above
// 0 pass it on.
template <class T, bool relu>
__device__ void placesBackward(T* dx, const T* dout, const unsigned char* places, int windows, int Q) {
  for (int i = first(); i < windows; i += step()) {
    // places[i] has noMaximum added if the maximum is not above 0; then at matches no element.
    int at = relu ? places[i] : places[i] % noMaximum;
    T contribution[4], g = dout[i];
    for (int j = 0; j < 4; j++) contribution[j] = at == j ? g : T(0);
    auto to = quad<T, Vector<T, 2>>(dx, i, Q);
    to[0] = {contribution[0], contribution[1]};
    to[Q] = {contribution[2], contribution[3]};
  }
}

template <class T>
struct AverageContribution {
  const T* dout;
  Pool p;

  __device__ T operator()(int plane, int, int i, int j) const { return dout[(plane * p.P + i) * p.Q + j] / T(Window(p, i, j).size()); }
};

}  // namespace

#define SHAPE int planes, int H, int W, int P, int Q, int R, int S, int sH, int sW, int pH, int pW
#define POOL Pool{planes, H, W, P, Q, R, S, sH, sW, pH, pW}
#define POOLS(suffix, T)                                                                                         \
  KERNEL(max_pool_fwd_##suffix, 256)(Out<T> y, In<T> x, SHAPE) { maxForward(y.at(), x.at(), POOL); }             \
  KERNEL(max_pool_bwd_##suffix, 256, 4)(Out<T> dx, In<T> dout, In<T> x, SHAPE) {                                 \
    gather(dx.at(), POOL, MaxContribution<T, false>{dout.at(), x.at(), POOL});                                          \
  }                                                                                                              \
  KERNEL(max_pool_relu_fwd_##suffix, 256)(Out<T> y, In<T> x, SHAPE) { maxReLUForward(y.at(), x.at(), POOL); }    \
  KERNEL(max_pool_relu_bwd_##suffix, 256, 4)(Out<T> dx, In<T> dout, In<T> x, SHAPE) {                            \
    gather(dx.at(), POOL, MaxContribution<T, true>{dout.at(), x.at(), POOL});                                           \
  }                                                                                                              \
  KERNEL(max_places_fwd_##suffix, 256)(Out<unsigned char> places, In<T> x, int windows, int Q) {                 \
    placesForward(places.at(), x.at(), windows, Q);                                                              \
  }                                                                                                              \
  KERNEL(max_places_bwd_##suffix, 256)(Out<T> dx, In<T> dout, In<unsigned char> places, int windows, int Q) {    \
    placesBackward<T, false>(dx.at(), dout.at(), places.at(), windows, Q);                                       \
  }                                                                                                              \
  KERNEL(max_places_relu_bwd_##suffix, 256)(Out<T> dx, In<T> dout, In<unsigned char> places, int windows, int Q) { \
    placesBackward<T, true>(dx.at(), dout.at(), places.at(), windows, Q);                                        \
  }                                                                                                              \
  KERNEL(average_pool_fwd_##suffix, 256)(Out<T> y, In<T> x, SHAPE) { averageForward(y.at(), x.at(), POOL); }     \
  KERNEL(average_pool_bwd_##suffix, 256)(Out<T> dx, In<T> dout, SHAPE) { gather(dx.at(), POOL, AverageContribution<T>{dout.at(), POOL}); }

POOLS(f32, float)
POOLS(f64, double)

KERNEL(max_pool_3x3_bwd_f32, 256, 2)(Out<float> dx, In<float> dout, In<float> x, SHAPE) {
  maxBackwardHalves<false>(dx.at(), dout.at(), x.at(), POOL);
}
KERNEL(max_pool_3x3_relu_bwd_f32, 256, 2)(Out<float> dx, In<float> dout, In<float> x, SHAPE) {
  maxBackwardHalves<true>(dx.at(), dout.at(), x.at(), POOL);
}
