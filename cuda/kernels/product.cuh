// Matrix products, one output tile per block:
//
//     out(m, n) = sum over k of a(m, k) b(k, n)
//
// The operands may be matrices, or images seen through a filter (im2col.cuh). stage.cuh copies them
// to shared memory; a Shape multiplies a tile: tile.cuh on the CUDA cores, tensorcore.cuh on the
// tensor cores.
//
// The depth k is cut into slices (split-K) that depend on the product's shape only. A slice is
// summed from zero in order of depth, and the slices' sums are added in order. That happens in one
// of three ways with the same bits: by one block, slice after slice; by several groups of a block's
// threads, a slice each at a time; or by a block per slice, which writes to a workspace that
// another kernel adds up (slices.cu). Example: depth 1000 in slices of 300 has four slices, the
// last one of 100, whoever computes them.
#pragma once

#include "stage.cuh"

namespace pollen {

INLINE int minInt(int a, int b) { return a < b ? a : b; }

// Epilogue is a set of operations on a sum before it is stored. withPool: every four columns are a
// 2 x 2 pooling window, and only its maximum is stored; withArgmax also stores which of the four
// elements that was, and with onlyPositive noMaximum if it is not above 0. withMask: bias has one
// number per sum, and the sum becomes 0 unless that number is above 0. atMost6: min(6, sum), which
// makes ReLU6 of a ReLU; with withMask, the number must also be below 6.
enum Epilogue { biasPerColumn = 1, biasPerRow = 2, withReLU = 4, withPool = 8, withArgmax = 16, onlyPositive = 32, withMask = 64, atMost6 = 128 };

template <class T>
INLINE T finish(T sum, int epilogue, const T* bias, int at) {
  if (epilogue & (biasPerColumn | biasPerRow)) sum += bias[at];
  if (epilogue & withReLU && sum <= 0) return T(0);
  return epilogue & atMost6 && sum > 6 ? T(6) : sum;
}

// masked applies the gradient of a ReLU or ReLU6, whose result is by: it returns sum, or 0 where the
// activation is constant.
template <class T>
INLINE T masked(T sum, int epilogue, T by) {
  return by > 0 && (!(epilogue & atMost6) || by < 6) ? sum : T(0);
}

// finishMatrix is finish for element (m, n) of a matrix with columns columns; it also applies a
// mask.
template <class T>
INLINE T finishMatrix(T sum, int epilogue, const T* bias, int m, int n, int columns) {
  if (epilogue & withMask) return masked(sum, epilogue, bias[m * columns + n]);
  return finish(sum, epilogue, bias, epilogue & biasPerRow ? m : n);
}

// noMaximum is the argmax of a window whose maximum does not count.
constexpr int noMaximum = 4;

// Maximum is the maximum of a window. best is NaN if any of the four elements is NaN; found is the
// first of the elements that were the greatest so far, and at its number, so a NaN is never found
// unless it comes first.
template <class T>
struct Maximum {
  T best, found;
  int at = 0;

  INLINE explicit Maximum(const T* window) : best(window[0]), found(best) {
#pragma unroll
    for (int j = 1; j < 4; j++) {
      T v = window[j];
      if (v > best) at = j, found = v;
      if (v > best || v != v) best = v;
    }
  }
};

// Pooled is the destination of windows' maxima: element i of data is window i's maximum, element i
// of argmax its position.
template <class T>
struct Pooled {
  Out<T> data;
  Out<unsigned char> argmax;

  INLINE void store(int i, const T* window, int epilogue) const {
    Maximum<T> m(window);
    data.at()[i] = m.best;
    if (epilogue & withArgmax) argmax.at()[i] = epilogue & onlyPositive && !(m.found > 0) ? noMaximum : m.at;
  }
};

// Output maps element (m, n) of a product to memory: columns come in runs of inner contiguous
// elements, which are outer apart (one run per image of a batch). A matrix is one run. The epilogue
// may have withPool only if pools is set and columns come in chunks; data is undefined then. With
// withMask, bias has the layout of data.
template <class T, bool pools = false>
struct Output {
  T* data;
  const T* bias;
  int rows, columns, rowStride, inner, outer, epilogue;
  Pooled<T> pooled;

  // inChunks reports whether four columns from a multiple of four on are contiguous and 16-byte
  // aligned.
  INLINE bool inChunks() const { return (columns | rowStride | inner | outer) % 4 == 0; }
};

// Slices describes how the depth is split: count slices of each depths, of which the last may be
// shorter. If gridDim.y is count, each block computes one slice, and out is a workspace [slices,
// out's elements]; otherwise a block computes all of them in order.
struct Slices {
  int depth, count, each;
};

// RowsOf and ColumnsOf are a stage's parts for a and b.
template <class Shape>
using RowsOf = StageOf<Shape::rows, Shape::depth, Shape::threads, Shape::groups>;
template <class Shape>
using ColumnsOf = StageOf<Shape::columns, Shape::depth, Shape::threads, Shape::groups>;

// pipelineSlice adds the depths from k to end to a thread's sums, in a software pipeline (sm_80):
// while one stage is multiplied, the next ones are being copied. With 4 stages, three are in
// flight, and the first three rounds only copy.
//
// Each round's copies are one cp.async group, and a round waits for the group of its own stage. The
// barrier after the wait guarantees three things: all threads' copies have arrived, no thread still
// reads the stage that is overwritten next, and what the operands announced for the next stage is
// readable. Deep chunks move to their final places just before that barrier.
//
// With several groups of threads, all of them run the rounds of a full slice of each depths, since
// the barriers are the block's; a group with a shorter slice, or none, idles.
template <class Shape, class T, class A, class B>
INLINE void pipelineSlice(typename Shape::Sums& sums, A& a, B& b, int k, int end, int each, T* memory) {
  constexpr int depth = Shape::depth, stages = Shape::stages, ahead = stages - 1;
  constexpr bool deep = mayBeDeep<A> && mayBeDeep<B> && Shape::threads < 256;  // larger blocks lack the registers
  int rounds = (end - k + depth - 1) / depth, all = Shape::groups > 1 ? (each + depth - 1) / depth : rounds;
  a.advance(k, end, 0);
  b.advance(k, end, 0);
  for (int round = -ahead, next = 0; round < all; round++) {
    copyAsyncWait<ahead - 1>();
    if constexpr (deep) {
      bool deepA = a.inDeepChunks(), deepB = b.inDeepChunks();
      if (round >= 0 && (deepA || deepB)) {
        T* stage = memory + (next + 1 == stages ? 0 : next + 1) * Shape::stage;
        TransposedChunks<RowsOf<Shape>, T> rows;
        TransposedChunks<ColumnsOf<Shape>, T> columns;
        bool there = Shape::groups == 1 || round < rounds;
        if (there && deepA) rows.load(stage);
        if (there && deepB) columns.load(stage + Shape::left);
        barrier();
        if (there && deepA) rows.store(stage);
        if (there && deepB) columns.store(stage + Shape::left);
      }
    }
    barrier();
    int now = next + 1 == stages ? 0 : next + 1, coming = round + ahead, from = opaque(k + coming * depth);
    if (coming < rounds) {
      T* to = memory + next * Shape::stage;
      copy<RowsOf<Shape>, deep>(a, from, coming & 1, to);
      copy<ColumnsOf<Shape>, deep>(b, from, coming & 1, to + Shape::left);
    }
    copyAsyncCommit();
    a.advance(from + depth, end, coming + 1 & 1);
    b.advance(from + depth, end, coming + 1 & 1);
    if (round >= 0 && (Shape::groups == 1 || round < rounds)) sums.add(memory + now * Shape::stage, memory + now * Shape::stage + Shape::left);
    next = now;
  }
}

// alternateSlice does the same before sm_80: the next stage is loaded into registers while the
// present one is multiplied (double buffering). The first round only loads.
template <class Shape, class T, class A, class B>
INLINE void alternateSlice(typename Shape::Sums& sums, A& a, B& b, int k, int end, T* memory) {
  constexpr int depth = Shape::depth;
  RegisterStage<RowsOf<Shape>, T> left;
  RegisterStage<ColumnsOf<Shape>, T> right;
  a.advance(k, end, 0);
  b.advance(k, end, 0);
  barrier();
  for (int from = k - depth, stage = 1; from < end; from += depth, stage ^= 1) {
    T *now = memory + stage * Shape::stage, *next = memory + (stage ^ 1) * Shape::stage;
    bool more = from + depth < end;
    int coming = opaque(from + depth);
    if (more) {
      left.load(a, coming, stage ^ 1);
      right.load(b, coming, stage ^ 1);
    }
    if (from >= k) sums.add(now, now + Shape::left);
    if (more) {
      left.store(a, coming, stage ^ 1, next);
      right.store(b, coming, stage ^ 1, next + Shape::left);
      a.advance(coming + depth, end, stage);
      b.advance(coming + depth, end, stage);
    }
    barrier();
  }
}

// storeRows writes one pass of a tile from shared memory, or adds it to the slices before it. The
// threads of a warp write neighbouring columns, and each thread handles one vector of columns;
// left-over threads handle none. It goes through several rows at a time, and first loads what these
// need. With several groups of threads, their sums are added in order, and the running total stays
// in shared memory after the groups' until the last slices.
template <int width, class Shape, class T, bool pools>
INLINE void storeRows(const Output<T, pools>& out, int row, int column, bool first, bool last, int groups, T* memory) {
  constexpr int across = Shape::columns / width, step = Shape::all / across, together = Shape::groups > 1 ? 2 : 4;
  using Some = Vector<T, width>;
  unsigned thread = opaque(threadIdx.x);
  if (Shape::all % across != 0 && thread >= across * step) return;
  int x = thread % across * width, n = column + x;
  if (n >= out.columns) return;
  T* line = out.data + (n / out.inner * out.outer + n % out.inner);
  Some ofColumns = {};
  if (last && out.epilogue & biasPerColumn) {
    ofColumns = *(const Some*)(out.bias + n);
    if constexpr (width == 4) keepLive(ofColumns.v[0], ofColumns.v[1], ofColumns.v[2], ofColumns.v[3]);
  }
  for (int begin = thread / across; begin < Shape::passRows && row + begin < out.rows; begin += together * step) {
    Some sum[together], before[together], by[together], *to[together];
    bool there[together];
#pragma unroll
    for (int i = 0; i < together; i++) {
      there[i] = begin + i * step < Shape::passRows && row + begin + i * step < out.rows;
      int y = there[i] ? begin + i * step : begin, m = row + y;  // a row that is not there is another one's
      to[i] = (Some*)(line + m * out.rowStride);
      sum[i] = *(const Some*)(memory + Shape::sumAt(y, x));
      if constexpr (Shape::groups > 1) {
        if (!first) before[i] = *(const Some*)(memory + Shape::groups * Shape::memory + Shape::sumAt(y, x));
      } else if (!first) {
        before[i] = *to[i];
        if constexpr (width == 4) keepLive(before[i].v[0], before[i].v[1], before[i].v[2], before[i].v[3]);  // one load
      }
      by[i] = ofColumns;
      if (last && out.epilogue & withMask) {
        by[i] = *(const Some*)(out.bias + ((const T*)to[i] - out.data));
        if constexpr (width == 4) keepLive(by[i].v[0], by[i].v[1], by[i].v[2], by[i].v[3]);
      }
      if (last && out.epilogue & biasPerRow) {
        T bias = out.bias[m];
#pragma unroll
        for (int j = 0; j < width; j++) by[i].v[j] = bias;
      }
    }
#pragma unroll
    for (int i = 0; i < together; i++) {
      if (!there[i]) break;
      int y = begin + i * step;
#pragma unroll
      for (int j = 0; j < width; j++)
        if (!first) sum[i].v[j] = before[i].v[j] + sum[i].v[j];
      if constexpr (Shape::groups > 1) {
#pragma unroll
        for (int g = 1; g < Shape::groups; g++) {
          if (g >= groups) break;
          Some v = *(const Some*)(memory + g * Shape::memory + Shape::sumAt(y, x));
#pragma unroll
          for (int j = 0; j < width; j++) sum[i].v[j] += v.v[j];
        }
        if (!last) {
          *(Some*)(memory + Shape::groups * Shape::memory + Shape::sumAt(y, x)) = sum[i];
          opaque(0);  // otherwise clang makes one store of this and of the last one, to either memory
          continue;
        }
      }
      if (last) {
#pragma unroll
        for (int j = 0; j < width; j++)
          sum[i].v[j] = out.epilogue & withMask ? masked(sum[i].v[j], out.epilogue, by[i].v[j]) : finish(sum[i].v[j], out.epilogue, by[i].v + j, 0);
      }
      if constexpr (pools && width == 4) {
        if (last && out.epilogue & withPool) {
          out.pooled.store(((const T*)to[i] - out.data) / 4, sum[i].v, out.epilogue);
          continue;
        }
      }
      *to[i] = sum[i];
    }
  }
}

// storeSums writes a thread's sums by way of shared memory, in Shape::passes passes, because a
// tile's sums may not fit at once: a thread holds scattered elements, but a warp should write
// contiguous ones.
template <class Shape, class T, bool pools>
INLINE void storeSums(const typename Shape::Sums& sums, const Output<T, pools>& out, int row, int column, bool first, bool last, T* memory,
                      int group = 0, int groups = 1) {
#pragma unroll
  for (int pass = 0; pass < Shape::passes; pass++) {
    barrier();
    if constexpr (Shape::groups > 1)
      sums.write(memory + group * Shape::memory, pass);
    else
      sums.write(memory, pass);
    barrier();
    int from = row + pass * Shape::passRows;
    if (out.inChunks())
      storeRows<4, Shape>(out, from, column, first, last, groups, memory);
    else
      storeRows<1, Shape>(out, from, column, first, last, groups, memory);
  }
  barrier();
}

// multiply computes the tile of block blockIdx.x. Consecutive blocks go down a column of tiles, so
// that blocks that run together share b in the cache.
template <class Shape, class T, bool pools, class A, class B>
INLINE void multiply(A a, B b, Output<T, pools> out, Slices slices, T* memory) {
  int down = (out.rows + Shape::rows - 1) / Shape::rows;
  int row = blockIdx.x % down * Shape::rows, column = blockIdx.x / down * Shape::columns;
  a.begin(row);
  b.begin(column);
  typename Shape::Sums sums;
  if constexpr (Shape::groups > 1) {
    // Group g of the block's threads computes slice g, g + groups, ...; storeSums adds the groups'
    // sums in order, so the bits are those of one group.
    int group = threadIdx.x / Shape::threads;
    for (int slice = 0; slice < slices.count; slice += Shape::groups) {
      int k = minInt((slice + group) * slices.each, slices.depth), end = minInt(k + slices.each, slices.depth), left = slices.count - slice;
      sums.clear();
      pipelineSlice<Shape>(sums, a, b, k, end, slices.each, memory + group * Shape::memory);
      storeSums<Shape>(sums, out, opaque(row), opaque(column), slice == 0, left <= Shape::groups, memory, group, left);
    }
    return;
  }
  // Either a block per slice, into the workspace, or one block for all slices.
  bool split = gridDim.y > 1;
  if (split) out.data += (long long)blockIdx.y * out.rows * out.columns;
  for (int slice = blockIdx.y; slice < slices.count; slice += gridDim.y) {
    int k = slice * slices.each, end = minInt(k + slices.each, slices.depth);
    sums.clear();
    if constexpr (Shape::stages > 2)
      pipelineSlice<Shape>(sums, a, b, k, end, slices.each, memory);
    else
      alternateSlice<Shape>(sums, a, b, k, end, memory);
    storeSums<Shape>(sums, out, opaque(row), opaque(column), split || slice == 0, !split && slice == slices.count - 1, memory);
  }
}

}  // namespace pollen
