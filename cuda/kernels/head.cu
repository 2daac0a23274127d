// The end of a classifier's forward pass and the begin of its backward pass in one kernel: from the
// activations in front of the last linear layer to their gradient.
//
//     h = epilogue(sum of slices)                        [batch, width], if h is not there yet
//     logits = h transpose(w) + bias                     [batch, classes]
//     dlogits = (softmax(logits) - onehot(label)) dout / batch
//     dh = dlogits w, 0 where h is not positive          [batch, width]
//
// Each of these is little work that waits for the one before it. Rows of the batch do not depend on
// each other, so a block does everything for some rows, with the layer's weights in shared memory.
//
// All sums have the order of the kernels that this one stands for, so that both give the same bits:
// slices_f32, matmul_thin_dots, cross_entropy_bwd_f32 and matmul_thin_shallow.
#include "slices.cuh"
#include "softmax.cuh"
#include "tile.cuh"

namespace pollen {

constexpr int headThreads = 256, headWarps = headThreads / 32;

// groupMaximum and groupSum are warpMaximum and warpSum over groups of lanes neighbouring lanes, a
// power of two. They have the bits of the whole warp's if all other lanes have no value, or 0.
template <int lanes, class T>
INLINE T groupMaximum(T v) {
#pragma unroll
  for (int mask = lanes / 2; mask > 0; mask >>= 1) {
    T other = shuffleXor(v, mask);
    v = v != v || v > other ? v : other;
  }
  return v;
}
template <int lanes, class T>
INLINE T groupSum(T v) {
#pragma unroll
  for (int mask = lanes / 2; mask > 0; mask >>= 1) v += shuffleXor(v, mask);
  return v;
}

// Head is the arguments of the kernel for one chain. maxClasses is 16 or 32.
template <int maxClasses>
struct Head {
  float *dh, *dlogits, *logits, *h;  // h is written if there are slices
  const float *from, *hiddenBias, *w, *bias;
  const int* labels;
  const float* dout;
  int batch, width, classes, slices, epilogue, hasBias, masked, parts, rows;

  // The rows share a block's threads in two ways: across threads have neighbouring
  // columns, of every groups-th row; or the lanes of a part of a warp have the classes of a row.
  static constexpr int rowsPerWarp = 32 / maxClasses;

  // Weights is a thread's part of w on its way to shared memory.
  static constexpr int chunks = 4;
  struct Weights {
    float v[chunks][4];
  };

  INLINE Weights fetchWeights() const {
    Weights weights;
#pragma unroll
    for (int j = 0; j < chunks; j++) {
      int i = 4 * (threadIdx.x + headThreads * j);
      loadIf4(width % 4 == 0 && i < classes * width, w + i, weights.v[j]);
    }
    return weights;
  }

  INLINE void storeWeights(const Weights& weights, float* to) const {
    int size = classes * width, from = 0;
    if (width % 4 == 0) {
#pragma unroll
      for (int j = 0; j < chunks; j++) {
        int i = 4 * (threadIdx.x + headThreads * j);
        if (i < size) *(Vector<float, 4>*)(to + i) = {weights.v[j][0], weights.v[j][1], weights.v[j][2], weights.v[j][3]};
      }
      from = 4 * headThreads * chunks;
    }
    for (int i = from + threadIdx.x; i < size; i += headThreads) to[i] = w[i];
  }

  // hidden returns element i of h, the sum of slices; columnBias is its column's.
  INLINE float hidden(int i, float columnBias) const {
    float sum = sumSlices<1>(from + i, batch * width, slices).v[0];
    if (epilogue & biasPerColumn) sum += columnBias;
    return epilogue & withReLU && sum <= 0 ? 0.0f : sum;
  }

  // bring writes a column of every groups-th of count rows of h to shared memory.
  INLINE void bring(float* to, int begin, int count, int column, int group, int groups) const {
    int step = groups * width, end = count * width, offset = begin * width;
    if (slices == 0) {
#pragma unroll 4
      for (int i = group * width + column; i < end; i += step) to[i] = from[offset + i];
      return;
    }
    float columnBias = loadIf(epilogue & biasPerColumn, hiddenBias + column);
    for (int i = group * width + column; i < end; i += step) to[i] = h[offset + i] = hidden(offset + i, columnBias);
  }

  // fetch loads a lane's four of the 128 depths from k on, as the kernel of thin products does:
  // neighbours if fours is set, else 32 apart.
  template <bool fours>
  INLINE void fetch(float (&to)[4], const float* row, int k) const {
    int lane = threadIdx.x % 32;
    if constexpr (fours) {
      bool there = k + 4 * lane < width;
      auto v = *(const Vector<float, 4>*)(row + (there ? k + 4 * lane : 0));
#pragma unroll
      for (int j = 0; j < 4; j++) to[j] = there ? v.v[j] : 0;
    } else {
#pragma unroll
      for (int j = 0; j < 4; j++) {
        int at = k + lane + 32 * j;
        to[j] = at < width ? row[at] : 0;
      }
    }
  }

  // multiply computes the dot products of count rows, each part of the depth on its own: sums
  // [rows, parts, maxClasses]. A warp has four classes of a row at a time.
  template <bool fours>
  INLINE void multiply(float* sums, const float* rows, const float* weights, int count) const {
    int lane = threadIdx.x % 32, class4 = threadIdx.x / 32 * 4, part = 0, row = 0;
    for (;;) {
      // Warps count classes, then parts, then rows: a division would take longer.
      while (class4 >= classes) {
        class4 -= (classes + 3) / 4 * 4;
        if (++part == parts) part = 0, row++;
      }
      if (row >= count) return;
      float v[4] = {0, 0, 0, 0};
      for (int k = 128 * part; k < width; k += 128 * parts) {
        float a[4], b[4][4];
        fetch<fours>(a, rows + row * width, k);
#pragma unroll
        for (int t = 0; t < 4; t++) fetch<fours>(b[t], weights + minInt(class4 + t, classes - 1) * width, k);
#pragma unroll
        for (int t = 0; t < 4; t++)
#pragma unroll
          for (int j = 0; j < 4; j++) v[t] = multiplyAdd(a[j], b[t][j], v[t]);
      }
      reduceScatter<4, 16, 1>(v);
      if (lane % 8 == 0) sums[(row * parts + part) * maxClasses + class4 + lane / 8] = v[0];
      class4 += 4 * headWarps;
    }
  }

  // differentiate computes logits and dlogits of count rows from row begin on. gradient [rows,
  // maxClasses] gets dlogits, and 0 for classes that do not exist.
  INLINE void differentiate(float* gradient, const float* sums, int begin, int count, int label, float classBias, double scale) const {
    int k = threadIdx.x % maxClasses, row = threadIdx.x / maxClasses, at = minInt(row, count - 1) * parts;
    bool there = row < count && k < classes;
    float z = sums[at * maxClasses + (k < classes ? k : 0)];
#pragma unroll 1
    for (int part = 1; part < parts; part++) z += sums[(at + part) * maxClasses + (k < classes ? k : 0)];
    if (hasBias) z += classBias;
    double top = groupMaximum<maxClasses>(z), e = k < classes ? math::exp((double)z - top) : 0;
    double total = groupSum<maxClasses>(e);
    double p = (k < classes ? e : total) / total;  // a division of 0 takes long
    if (p < 0x1p-64) p = 0;                        // as cross_entropy_bwd_f32 does
    float d = k < classes ? float((p - (k == label ? 1 : 0)) * scale) : 0;
    if (row < count) gradient[row * maxClasses + k] = d;
    if (there) {
      logits[(begin + row) * classes + k] = z;
      dlogits[(begin + row) * classes + k] = d;
    }
  }

  // propagate computes a column of dh for every groups-th of count rows.
  INLINE void propagate(const float* gradient, const float* rows, const float* weights, int begin, int count, int column, int group, int groups) const {
    float own[maxClasses];
#pragma unroll
    for (int k = 0; k < maxClasses; k++) own[k] = k < classes ? weights[k * width + column] : 0;
    for (int row = group; row < count; row += groups) {
      float sum = 0;
#pragma unroll
      for (int k = 0; k < maxClasses; k += 4) {
        // Classes that do not exist add a zero, which turns -0 into 0, once or more often.
        if (k > classes) continue;
        auto d = *(const Vector<float, 4>*)(gradient + row * maxClasses + k);
#pragma unroll
        for (int j = 0; j < 4; j++) sum = multiplyAdd(d.v[j], own[k + j], sum);
      }
      if (masked && !(rows[row * width + column] > 0)) sum = 0;
      dh[(begin + row) * width + column] = sum;
    }
  }

  INLINE void operator()(float* memory) const {
    int across = minInt(headThreads, (width + 31) / 32 * 32), groups = headThreads / across, left = threadIdx.x % across;
    int group = (int)threadIdx.x < groups * across ? threadIdx.x / across : rows;  // threads that are left over have no row
    float *weights = memory, *hiddenRows = weights + (classes * width + 3) / 4 * 4, *gradient = hiddenRows + (rows * width + 3) / 4 * 4,
          *sums = gradient + rows * maxClasses;
    int begin = blockIdx.x * rows, count = minInt(rows, batch - begin), k = threadIdx.x % maxClasses;
    const Weights fetched = fetchWeights();
    float classBias = loadIf(hasBias && k < classes, bias + k);
    double scale = (double)*dout / batch;
    int label = labels[begin + minInt(threadIdx.x / maxClasses, count - 1)];
    for (int column = left; column < width; column += across) bring(hiddenRows, begin, count, column, group, groups);
    storeWeights(fetched, weights);
    barrier();
    if (width % 4 == 0)
      multiply<true>(sums, hiddenRows, weights, count);
    else
      multiply<false>(sums, hiddenRows, weights, count);
    barrier();
    differentiate(gradient, sums, begin, count, label, classBias, scale);
    barrier();
    for (int column = left; column < width; column += across) propagate(gradient, hiddenRows, weights, begin, count, column, group, groups);
  }
};

}  // namespace pollen

// HEAD defines the kernel for at most maxClasses classes. A block computes rows rows, at most 256 /
// maxClasses. With slices 0, from is h.
#define HEAD(maxClasses)                                                                                                                    \
  KERNEL(head_##maxClasses##_f32, headThreads, 2)                                                                                           \
  (Out<float> dh, Out<float> dlogits, Out<float> logits, Out<float> h, In<float> from, In<float> hiddenBias, In<float> w, In<float> bias,   \
   In<int> labels, In<float> dout, int batch, int width, int classes, int slices, int epilogue, int hasBias, int masked, int parts, int rows) { \
    DYNAMIC_SHARED(Line, memory);                                                                                                           \
    Head<maxClasses>{dh.at(), dlogits.at(), logits.at(), h.at(), from.at(), hiddenBias.at(), w.at(), bias.at(), labels.at(), dout.at(),     \
                     batch, width, classes, slices, epilogue, hasBias, masked, parts, rows}((float*)memory);                                \
  }

HEAD(16)
HEAD(32)
