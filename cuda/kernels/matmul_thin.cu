// Matrix products with at most 32 rows, columns or depths, out [M N] = op(a) op(b), with a bias per
// column and a ReLU, or a mask.
//
// A classifier's last layer has few outputs, and such a product is finished as soon as its operands
// have arrived. These kernels therefore issue all loads at once instead of stage by stage, and
// spread the work over many small blocks. They multiply in float32 whatever the precision setting.
// The order of an element's sum follows from the product's shape only; the number of chains only
// changes how many elements a thread computes.
#include "reduce.cuh"
#include "tile.cuh"

namespace pollen {

// Side is an operand, with extent rows or columns of the result: [extent, depth] if alongDepth,
// else [depth, extent].
struct Side {
  const float* data;
  int extent, depth;
  bool alongDepth;

  INLINE const float* at(int x, int k) const { return data + (alongDepth ? x * depth + k : k * extent + x); }
  INLINE float load(int x, int k) const { return loadIf(x < extent && k < depth, at(x, k)); }
};

// Target is the result with its epilogue.
struct Target {
  float* data;
  const float* bias;
  int columns, epilogue;

  // biasOrMask loads the bias or the mask of element (m, n), ahead of its use.
  INLINE float biasOrMask(bool there, int m, int n) const {
    bool any = epilogue & (biasPerColumn | biasPerRow | withMask);
    return loadIf(there && any, bias + (epilogue & withMask ? m * columns + n : epilogue & biasPerRow ? m : n));
  }
  INLINE float finished(float sum, float biasOrMask) const { return finishMatrix(sum, epilogue, &biasOrMask, 0, 0, 0); }
};

// Thin is a product of a long side and a side with few elements, which may be the result's rows or
// its columns.
struct Thin {
  Side longer, few;
  Target out;
  bool fewRows;

  // fewRows exchanges the operands, so that the kernels see the long side first.
  INLINE Thin(float* out, const float* a, const float* b, const float* bias, int m, int n, int k, int transposeA, int transposeB, int epilogue, int fewRows)
      : longer{a, m, k, !transposeA}, few{b, n, k, transposeB != 0}, out{out, bias, n, epilogue}, fewRows(fewRows) {
    if (!fewRows) return;
    Side left = longer;
    longer = few;
    few = left;
  }

  INLINE bool has(int x, int t) const { return x < longer.extent && t < few.extent; }
  INLINE float biasOrMask(bool there, int x, int t) const { return out.biasOrMask(there && has(x, t), fewRows ? t : x, fewRows ? x : t); }
  INLINE void store(float sum, float biasOrMask, int x, int t) const {
    if (has(x, t)) out.data[fewRows ? t * out.columns + x : x * out.columns + t] = out.finished(sum, biasOrMask);
  }
};

// fetch loads a lane's four of the 128 depths from k on: neighbours if fours is set, else 32 apart.
template <bool fours>
INLINE void fetch(float (&to)[4], const Side& side, int x, int k) {
  int lane = threadIdx.x % 32;
  if constexpr (fours) {
    loadIf4(x < side.extent && k + 4 * lane < side.depth, side.at(x, k + 4 * lane), to);
  } else {
#pragma unroll
    for (int j = 0; j < 4; j++) to[j] = side.load(x, k + lane + 32 * j);
  }
}

// addDots adds the products of every parts-th run of 128 depths. together is how many elements of
// the few side are loaded at once: all of them for a single row, otherwise what the registers
// allow.
//
// All loads of a stretch of depth are issued before the first multiplication. A thread then waits
// for memory once, not once per product; the price is registers, which bounds how many elements it
// takes at once.
template <int maxFew, int rows, bool fours>
INLINE void addDots(float (&sums)[maxFew * rows], const Thin& p, int x, int part, int parts) {
  constexpr int together = rows * maxFew == 16 ? 16 : rows * maxFew == 32 ? 8 : 4;
  for (int k = 128 * part; k < p.longer.depth; k += 128 * parts) {
    float a[rows][4], b[together][4];
#pragma unroll
    for (int r = 0; r < rows; r++) fetch<fours>(a[r], p.longer, x + r, k);
#pragma unroll
    for (int from = 0; from < maxFew; from += together) {
#pragma unroll
      for (int t = 0; t < together; t++) fetch<fours>(b[t], p.few, from + t, k);
#pragma unroll
      for (int t = 0; t < together; t++)
#pragma unroll
        for (int r = 0; r < rows; r++)
#pragma unroll
          for (int j = 0; j < 4; j++) sums[r * maxFew + from + t] = multiplyAdd(a[r][j], b[t][j], sums[r * maxFew + from + t]);
    }
  }
}

// multiplyDots is for a long side with contiguous depth, such as a linear layer's input. The lanes
// of a warp split the depth, and a warp computes all elements of rows rows at once, in turns
// rounds. The depth may be cut into parts, with one warp each, whose sums are added in order by the
// block; with one part, a block's warps have different rows.
constexpr int maxParts = 8;

template <int maxFew, int rows>
INLINE void multiplyDots(const Thin& p, int parts, int turns) {
  constexpr int count = maxFew * rows, own = count > 32 ? count / 32 : 1, sharing = count < 32 ? 32 / count : 1;
  SHARED(float, kept, maxParts* count);
  int lane = threadIdx.x % 32, warp = threadIdx.x / 32, part = parts > 1 ? warp : 0, index = lane / sharing * own;
  int x = (parts > 1 ? blockIdx.x : blockIdx.x * (blockDim.x / 32) + warp) * rows * turns, end = x + rows * turns;
  bool writes = lane % sharing == 0;
  for (; x < end; x += rows) {
    // Biases and masks are loaded before the products, whose latency hides theirs.
    float biasOrMask[own], sums[count];
#pragma unroll
    for (int j = 0; j < own; j++) biasOrMask[j] = p.biasOrMask(part == 0 && writes, x + (index + j) / maxFew, (index + j) % maxFew);
#pragma unroll
    for (int i = 0; i < count; i++) sums[i] = 0;
    if (p.few.alongDepth && p.longer.depth % 4 == 0)
      addDots<maxFew, rows, true>(sums, p, x, part, parts);
    else
      addDots<maxFew, rows, false>(sums, p, x, part, parts);
    reduceScatter<count, 16, 1>(sums);
    if (parts > 1) {
      if (writes) {
#pragma unroll
        for (int j = 0; j < own; j++) kept[warp * count + index + j] = sums[j];
      }
      barrier();
      if (part == 0) {
        for (int other = 1; other < parts; other++)
#pragma unroll
          for (int j = 0; j < own; j++) sums[j] += kept[other * count + index + j];
      }
      if (turns > 1) barrier();
    }
    if (part > 0 || !writes) continue;
#pragma unroll
    for (int j = 0; j < own; j++) p.store(sums[j], biasOrMask[j], x + (index + j) / maxFew, (index + j) % maxFew);
  }
}

// multiplyColumns is for a long side whose depth is its rows, as in the gradient by a linear
// layer's weights. A thread has columns columns, eight apart, and all elements of the few side, for
// every 64th depth. A warp's four sums of a column, and then the 16 warps', are added in a fixed
// order.
constexpr int columnsThreads = 512, columnsLanes = 8;

template <int maxFew, int columns, int together>
INLINE void multiplyColumns(const Thin& p) {
  // Eight lanes are neighbouring columns; the other bits of the thread's number split the depth.
  constexpr int parts = columnsThreads / columnsLanes, all = columns * maxFew * columnsLanes, own = maxFew / 4;
  SHARED(float, kept, columnsThreads / 32 * all);
  int lane = threadIdx.x % columnsLanes, warp = threadIdx.x / 32, x = blockIdx.x * (columnsLanes * columns) + lane;
  int last = threadIdx.x / columnsLanes, lastX = x + last / maxFew * columnsLanes, lastT = last % maxFew;  // the element that this thread stores
  bool stores = threadIdx.x < all;
  float biasOrMask = p.biasOrMask(stores, lastX, lastT), sums[columns][maxFew];
#pragma unroll
  for (int c = 0; c < columns; c++)
#pragma unroll
    for (int t = 0; t < maxFew; t++) sums[c][t] = 0;
  for (int k = threadIdx.x / columnsLanes; k < p.longer.depth; k += parts * together) {
    float a[together][columns], b[together][maxFew];
#pragma unroll
    for (int i = 0; i < together; i++) {
#pragma unroll
      for (int c = 0; c < columns; c++) a[i][c] = p.longer.load(x + c * columnsLanes, k + i * parts);
#pragma unroll
      for (int t = 0; t < maxFew; t++) b[i][t] = p.few.load(t, k + i * parts);
    }
#pragma unroll
    for (int i = 0; i < together; i++)
#pragma unroll
      for (int c = 0; c < columns; c++)
#pragma unroll
        for (int t = 0; t < maxFew; t++) sums[c][t] = multiplyAdd(a[i][c], b[i][t], sums[c][t]);
  }
#pragma unroll
  for (int c = 0; c < columns; c++) {
    reduceScatter<maxFew, 16, 8>(sums[c]);
#pragma unroll
    for (int j = 0; j < own; j++) kept[warp * all + (c * maxFew + threadIdx.x % 32 / columnsLanes * own + j) * columnsLanes + lane] = sums[c][j];
  }
  barrier();
  if (!stores) return;
  float sum = kept[threadIdx.x];
#pragma unroll
  for (int other = 1; other < columnsThreads / 32; other++) sum += kept[other * all + threadIdx.x];
  p.store(sum, biasOrMask, lastX, lastT);
}

// Columns holds four columns of b with all their depths: neighbours if fours is set, else across
// apart, so that the threads together cover all columns.
template <int maxFew, bool fours>
struct Columns {
  float w[maxFew][4];
  int n, columnStride;

  INLINE Columns(const Side& b, int c, int across) : n(fours ? 4 * c : c), columnStride(fours ? 1 : across) {
#pragma unroll
    for (int k = 0; k < maxFew; k++) {
      if constexpr (fours) {
        loadIf4(k < b.depth, b.at(n, k), w[k]);
      } else {
#pragma unroll
        for (int j = 0; j < 4; j++) w[k][j] = b.load(n + j * columnStride, k);
      }
    }
  }

  // row computes the columns' elements in row m.
  INLINE void row(const Side& a, const Target& out, int m) const {
    float x[maxFew], biasOrMask[4], sums[4] = {0, 0, 0, 0};
    float* to = out.data + m * out.columns + n;
#pragma unroll
    for (int k = 0; k < maxFew; k++) x[k] = a.load(m, k);
#pragma unroll
    for (int j = 0; j < 4; j++) biasOrMask[j] = out.biasOrMask(n + j * columnStride < out.columns, m, n + j * columnStride);
#pragma unroll
    for (int k = 0; k < maxFew; k++)
#pragma unroll
      for (int j = 0; j < 4; j++) sums[j] = multiplyAdd(x[k], w[k][j], sums[j]);
#pragma unroll
    for (int j = 0; j < 4; j++) sums[j] = out.finished(sums[j], biasOrMask[j]);
    if constexpr (fours) {
      *(Vector<float, 4>*)to = {sums[0], sums[1], sums[2], sums[3]};
    } else {
#pragma unroll
      for (int j = 0; j < 4; j++)
        if (n + j * columnStride < out.columns) to[j * columnStride] = sums[j];
    }
  }
};

// multiplyShallow is for a depth of at most maxFew. A thread keeps four columns of b in registers,
// and computes them in each rows, in order of depth.
template <int maxFew, bool fours>
INLINE void multiplyShallow(const Side& a, const Side& b, const Target& out, int each) {
  int across = (b.extent + 3) / 4, block = first() / across, begin = block * each, end = minInt(begin + each, a.extent);
  Columns<maxFew, fours> columns(b, first() - block * across, across);
  for (int m = begin; m < end; m++) columns.row(a, out, m);
}

}  // namespace pollen

#define THIN(name, ...)                                                                                                               \
  KERNEL(name, __VA_ARGS__)                                                                                                           \
  (Out<float> out, In<float> a, In<float> b, In<float> bias, int m, int n, int k, int transposeA, int transposeB, int epilogue,       \
   int fewRows, int parts, int each)
#define SIDES out.at(), a.at(), b.at(), bias.at(), m, n, k, transposeA, transposeB, epilogue, fewRows

#define DOTS(name, maxFew, rows) \
  THIN(name, 32 * maxParts, maxFew * rows == 16 ? 1 : 2) { multiplyDots<maxFew, rows>(Thin(SIDES), parts, each); }
#define COLUMNS(name, maxFew, columns, together) \
  THIN(name, columnsThreads) { multiplyColumns<maxFew, columns, together>(Thin(SIDES)); }
#define SHALLOW(name, maxFew)                                                           \
  THIN(name, 128) {                                                                   \
    Side left = {a.at(), m, k, !transposeA}, right = {b.at(), n, k, transposeB != 0}; \
    Target to = {out.at(), bias.at(), n, epilogue};                                   \
    if (!transposeB && n % 4 == 0)                                                    \
      multiplyShallow<maxFew, true>(left, right, to, each);                             \
    else                                                                              \
      multiplyShallow<maxFew, false>(left, right, to, each);                            \
  }

// The names' figures are the capacity of the few side, and the rows (or columns) of the long side
// that a warp (or thread) computes at once. Which kernel and how many blocks a product gets is
// decided by package cuda.
DOTS(matmul_thin_dots_16x1_f32, 16, 1)
DOTS(matmul_thin_dots_16x2_f32, 16, 2)
DOTS(matmul_thin_dots_32x1_f32, 32, 1)
DOTS(matmul_thin_dots_32x2_f32, 32, 2)
COLUMNS(matmul_thin_columns_16x1_f32, 16, 1, 4)
COLUMNS(matmul_thin_columns_16x4_f32, 16, 4, 1)
COLUMNS(matmul_thin_columns_32x1_f32, 32, 1, 2)
COLUMNS(matmul_thin_columns_32x2_f32, 32, 2, 1)
SHALLOW(matmul_thin_shallow_16x1_f32, 16)
SHALLOW(matmul_thin_shallow_32x1_f32, 32)
