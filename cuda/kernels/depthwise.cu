// Depthwise convolutions, a filter of size x size taps for each plane, without dilation: x [B C H
// W], w [C 1 size size] -> y [B C P Q], and their gradients. grouped.cu has all others.
//
// Memory limits them: 3 x 3 taps make 18 operations of an element that is read and of one that is
// written. So each element should be fetched from global memory once, by few instructions. A thread
// computes a strip of a column. It goes down the rows, loads size neighbouring elements of each, and
// adds them to the sums of all outputs whose windows have that row. Neighbouring lanes have
// neighbouring columns, of the next strip or plane where a row ends, so that planes of any width
// fill a warp. A column's neighbours and the rows that two strips share come from the first-level
// cache.
#include "product.cuh"
#include "reduce.cuh"
#include "strips.cuh"

// Planes has the sizes of the images, in the notation of package graph/op, and the number of strips
// of a column.
struct Planes {
  int B, C, H, W, P, Q, padH, padW, strips;
};

// A strip's rows and columns of outputs: planes of 112, 56, 28, 14 and 7 rows are whole strips.
constexpr int stripRows = 7, stripColumns = 2;

struct alignas(8) Pair {
  float v[stripColumns];
};

// storeRow stores the neighbouring elements v from column on, those that a row of a plane has.
INLINE void storeRow(float* row, int column, int width, const float (&v)[stripColumns]) {
  if (width % 2 == 0)  // both exist, at a multiple of 8 bytes: planes then have even sizes
    *(Pair*)(row + column) = {v[0], v[1]};
  else {
    row[column] = v[0];
    if (column + 1 < width) row[column + 1] = v[1];
  }
}

// convolve computes a strip of y. With flip the filter is used in reverse: the gradient by an image
// with stride 1 is such a convolution of the gradient by the output. Element (j, c) of the strip
// becomes after(channel, sum, j, c); before(plane, p, q) is called first, with the strip's place.
template <int size, int stride, bool flip, class B, class F>
INLINE void convolve(float* y, const float* x, const float* w, const Planes& g, B before, F after) {
  constexpr int taps = size * size, rows = (stripRows - 1) * stride + size, columns = (stripColumns - 1) * stride + size;
  unsigned across = (g.Q + 1) / stripColumns, i = first();
  if (i >= g.B * g.C * g.strips * across) return;
  Place at(i, across, g.strips);
  int channel = at.plane % g.C, p = at.strip * stripRows, q = at.column * stripColumns;
  before(at.plane, p, q);
  float filter[taps], sums[stripRows][stripColumns] = {};
#pragma unroll
  for (int t = 0; t < taps; t++) filter[t] = w[channel * taps + (flip ? taps - 1 - t : t)];
  const float* from = x + (long long)at.plane * g.H * g.W;
#pragma unroll
  for (int t = 0; t < rows; t++) {
    float v[columns];
    loadRow(v, from, p * stride - g.padH + t, q * stride - g.padW, g.H, g.W);
#pragma unroll
    for (int r = 0; r < size; r++) {
      if (t < r || (t - r) % stride != 0 || (t - r) / stride >= stripRows) continue;
#pragma unroll
      for (int c = 0; c < stripColumns; c++) {
        float& sum = sums[(t - r) / stride][c];
#pragma unroll
        for (int s = 0; s < size; s++) sum = __builtin_fmaf(filter[r * size + s], v[c * stride + s], sum);
      }
    }
  }
  float* to = y + (long long)at.plane * g.P * g.Q;
#pragma unroll
  for (int j = 0; j < stripRows; j++) {
    if (p + j >= g.P) break;
    float v[stripColumns];
#pragma unroll
    for (int c = 0; c < stripColumns; c++) v[c] = after(channel, sums[j][c], j, c);
    storeRow(to + (p + j) * g.Q, q, g.Q, v);
  }
}

// forward computes a strip of y = min(max(x * w + bias, low), high). NaN stays NaN.
template <int size, int stride>
INLINE void forward(Out<float> y, In<float> x, In<float> w, In<float> bias, const Planes& g, int hasBias, float low, float high) {
  auto nothing = [](int, int, int) INLINED {};
  convolve<size, stride, false>(y.at(), x.at(), w.at(), g, nothing, [&](int channel, float sum, int, int) INLINED {
    if (hasBias) sum += bias.at()[channel];
    // Comparisons, not minima: NaN stays.
    if (sum < low) sum = low;
    if (sum > high) sum = high;
    return sum;
  });
}

// backwardInput computes dx for stride 1: a convolution with other padding. With withMask in
// epilogue, mask is x, the result of a ReLU or of ReLU6, whose gradient is also computed.
template <int size>
INLINE void backwardInput(float* dx, const float* dout, const float* w, const float* mask, const Planes& g, int epilogue) {
  Planes reverse = {g.B, g.C, g.P, g.Q, g.H, g.W, size - 1 - g.padH, size - 1 - g.padW, g.strips};
  float by[stripRows][stripColumns] = {};
  auto load = [&](int plane, int p, int q) INLINED {
    if (!(epilogue & withMask)) return;
#pragma unroll
    for (int j = 0; j < stripRows; j++) loadRow(by[j], mask + (long long)plane * g.H * g.W, p + j, q, g.H, g.W);
  };
  convolve<size, 1, true>(dx, dout, w, reverse, load, [&](int, float sum, int j, int c) INLINED {
    return epilogue & withMask ? masked(sum, epilogue, by[j][c]) : sum;
  });
}

// backwardInputHalves computes dx for stride 2, a strip of a pair of columns: row 2 i + u of the
// padded image gets taps r = u + 2 m of row i - m of dout.
template <int size>
INLINE void backwardInputHalves(float* dx, const float* dout, const float* w, const float* mask, const Planes& g, int epilogue) {
  constexpr int taps = size * size, half = (size + 1) / 2;
  unsigned across = pairs(g.W, g.padW), thread = first();
  if (thread >= g.B * g.C * g.strips * across) return;
  Place at(thread, across, g.strips);
  int channel = at.plane % g.C, i = firstPair(g.padH) + at.strip * stripPairs, j = firstPair(g.padW) + at.column;
  float filter[taps], sums[stripPairs][2][2] = {};
#pragma unroll
  for (int t = 0; t < taps; t++) filter[t] = w[channel * taps + t];
  const float* from = dout + (long long)at.plane * g.P * g.Q;
#pragma unroll
  for (int t = 0; t < stripPairs + half - 1; t++) {
    float v[half];
    loadRow(v, from, i - (half - 1) + t, j - (half - 1), g.P, g.Q);
#pragma unroll
    for (int m = 0; m < half; m++) {
      int pair = t - (half - 1) + m;
      if (pair < 0 || pair >= stripPairs) continue;
#pragma unroll
      for (int u = 0; u < 2; u++)
#pragma unroll
        for (int l = 0; l < half; l++)
#pragma unroll
          for (int e = 0; e < 2; e++) {
            int r = u + 2 * m, s = e + 2 * l;
            if (r < size && s < size) sums[pair][u][e] = __builtin_fmaf(filter[r * size + s], v[half - 1 - l], sums[pair][u][e]);
          }
    }
  }
  long long plane = (long long)at.plane * g.H * g.W;
#pragma unroll
  for (int pair = 0; pair < stripPairs; pair++)
#pragma unroll
    for (int u = 0; u < 2; u++) {
      int row = 2 * (i + pair) + u - g.padH, column = 2 * j - g.padW;
      float v[2] = {sums[pair][u][0], sums[pair][u][1]}, by[2];
      if (epilogue & withMask) {
        loadRow(by, mask + plane, row, column, g.H, g.W);
#pragma unroll
        for (int e = 0; e < 2; e++) v[e] = masked(v[e], epilogue, by[e]);
      }
      if ((unsigned)row >= (unsigned)g.H) continue;
      float* to = dx + plane + row * g.W;
      if (column >= 0) to[column] = v[0];
      if (column + 1 < g.W) to[column + 1] = v[1];
    }
}

constexpr int filterThreads = 256;

// backwardFilter writes sums of dw to row blockIdx.y of partial [gridDim.y C size size]. Block
// (channel, part) has rounds x 256 strips of the channel. A strip's sums are in float, of at most 14
// terms each. Those of all strips are in double. With withSums the sums of dout go to row blockIdx.y
// of sums [gridDim.y C]: the gradient of a bias. They are the same for all filters.
template <int size, int stride>
INLINE void backwardFilter(double* partial, const float* dout, const float* x, float* biasSums, const Planes& g, int rounds, int withSums) {
  constexpr int taps = size * size, rows = (stripRows - 1) * stride + size, columns = (stripColumns - 1) * stride + size, warps = filterThreads / 32;
  int channel = blockIdx.x, across = (g.Q + 1) / stripColumns, all = g.B * g.strips * across;
  double totals[taps + 1] = {};
  for (int round = 0; round < rounds; round++) {
    int i = (blockIdx.y * rounds + round) * filterThreads + threadIdx.x;
    if (i >= all) break;
    Place at(i, across, g.strips);
    int p = at.strip * stripRows, q = at.column * stripColumns;
    long long plane = (long long)at.plane * g.C + channel;
    const float *from = x + plane * g.H * g.W, *gradient = dout + plane * g.P * g.Q;
    float d[stripRows][stripColumns], sums[taps + 1] = {};
#pragma unroll
    for (int j = 0; j < stripRows; j++) loadRow(d[j], gradient, p + j, q, g.P, g.Q);
#pragma unroll
    for (int t = 0; t < rows; t++) {
      float v[columns];
      loadRow(v, from, p * stride - g.padH + t, q * stride - g.padW, g.H, g.W);
#pragma unroll
      for (int r = 0; r < size; r++) {
        if (t < r || (t - r) % stride != 0 || (t - r) / stride >= stripRows) continue;
#pragma unroll
        for (int c = 0; c < stripColumns; c++)
#pragma unroll
          for (int s = 0; s < size; s++) sums[r * size + s] = __builtin_fmaf(d[(t - r) / stride][c], v[c * stride + s], sums[r * size + s]);
      }
    }
#pragma unroll
    for (int j = 0; j < stripRows; j++) sums[taps] += d[j][0] + d[j][1];
#pragma unroll
    for (int t = 0; t <= taps; t++) totals[t] += sums[t];
  }
  SHARED(double, shares, warps * (taps + 1));
  int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
#pragma unroll
  for (int t = 0; t <= taps; t++) {
    double sum = warpSum(totals[t]);
    if (lane == 0) shares[warp * (taps + 1) + t] = sum;
  }
  barrier();
  if (threadIdx.x > taps) return;
  double sum = shares[threadIdx.x];
#pragma unroll
  for (int other = 1; other < warps; other++) sum += shares[other * (taps + 1) + threadIdx.x];
  int row = blockIdx.y * g.C + channel;
  if (threadIdx.x < taps)
    partial[(long long)row * taps + threadIdx.x] = sum;
  else if (withSums)
    biasSums[row] = (float)sum;
}

#define PLANES int B, int C, int H, int W, int P, int Q, int padH, int padW, int strips
#define PLANES_OF (Planes{B, C, H, W, P, Q, padH, padW, strips})

#define DEPTHWISE(size, stride, gradient, blocks)                                                        \
  KERNEL(depthwise_##size##x##size##_stride##stride##_fwd_f32, 256, blocks)                              \
  (Out<float> y, In<float> x, In<float> w, In<float> bias, PLANES, int hasBias, float low, float high) { \
    forward<size, stride>(y, x, w, bias, PLANES_OF, hasBias, low, high);                                 \
  }                                                                                                      \
  KERNEL(depthwise_##size##x##size##_stride##stride##_bwd_input_f32, 256, blocks)                        \
  (Out<float> dx, In<float> dout, In<float> w, In<float> mask, PLANES, int epilogue) {                   \
    gradient<size>(dx.at(), dout.at(), w.at(), mask.at(), PLANES_OF, epilogue);                          \
  }                                                                                                      \
  KERNEL(depthwise_##size##x##size##_stride##stride##_bwd_filter_f32, 256, 2)                            \
  (Out<double> partial, In<float> dout, In<float> x, Out<float> sums, PLANES, int rounds, int withSums) { \
    backwardFilter<size, stride>(partial.at(), dout.at(), x.at(), sums.at(), PLANES_OF, rounds, withSums); \
  }

DEPTHWISE(3, 1, backwardInput, 4)
DEPTHWISE(3, 2, backwardInputHalves, 2)
DEPTHWISE(5, 1, backwardInput, 2)
DEPTHWISE(5, 2, backwardInputHalves, 2)
