// Matrix products by blocks, each of which makes a tile of the result,
//
//     out(m, n) = sum over k of a(m, k) b(k, n)
//
// whatever the operands are: matrices, or images seen through a filter (window.cuh). How they come to shared memory is in stage.cuh; how a tile is
// multiplied is its Shape's: tile.cuh has that of the ordinary cores, tensorcore.cuh that of the tensor cores.
//
// The depth is cut into slices that the shape alone determines. An element's slices are summed from zero, each in order of depth, and then
// added in order: by one block after the other's, by as many groups of a block's threads at once, or by a block each into workspace and a kernel that
// adds (slices.cu), with the same bits.
#pragma once

#include "stage.cuh"

namespace pollen {

INLINE int minInt(int a, int b) { return a < b ? a : b; }

// Epilogue is what is done to a sum before it is stored. With pooling every four columns are a window, whose maximum alone is; which of the four it was is
// noted if asked for, and that it was none if only those above 0 count. With a mask bias is a number for each sum, which is 0 unless that is above 0.
enum Epilogue { biasPerColumn = 1, biasPerRow = 2, withReLU = 4, withPool = 8, withArgmax = 16, onlyPositive = 32, withMask = 64 };

template <class T>
INLINE T finish(T sum, int epilogue, const T* bias, int at) {
  if (epilogue & (biasPerColumn | biasPerRow)) sum += bias[at];
  return epilogue & withReLU && sum <= 0 ? T(0) : sum;
}

// finishMatrix is finish of a matrix's element (m, n) of so many columns, which may have a mask.
template <class T>
INLINE T finishMatrix(T sum, int epilogue, const T* bias, int m, int n, int columns) {
  if (epilogue & withMask) return bias[m * columns + n] > 0 ? sum : T(0);
  return finish(sum, epilogue, bias, epilogue & biasPerRow ? m : n);
}

// noMaximum is noted of a window whose maximum does not count.
constexpr int noMaximum = 4;

// Maximum is a window's: best is NaN if one of the four elements is; found is the first, in order, of those that were the greatest, which is number at.
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

// Pooled is where windows' maxima go: that of window i is element i, and which of the four it was is which's.
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

// Output says where element (m, n) of a product lies: columns come in runs of inner, outer apart. A matrix has one run. Only with pools can the epilogue
// have pooling, with columns in chunks; what data holds then is undefined.
template <class T, bool pools = false>
struct Output {
  T* data;
  const T* bias;
  int rows, columns, rowStride, inner, outer, epilogue;
  Pooled<T> pooled;

  // inChunks tells whether four columns from a multiple of four on are neighbours, of 16 bytes.
  INLINE bool inChunks() const { return (columns | rowStride | inner | outer) % 4 == 0; }
};

// Slices is the cut of a product's depth: so many of each depths, the last one shorter. With as many blocks along y each has one, and out is
// workspace [slices, out's elements], else a block has all in order.
struct Slices {
  int depth, count, each;
};

// RowsOf and ColumnsOf are a stage's parts of a and of b.
template <class Shape>
using RowsOf = StageOf<Shape::rows, Shape::depth, Shape::threads, Shape::groups>;
template <class Shape>
using ColumnsOf = StageOf<Shape::columns, Shape::depth, Shape::threads, Shape::groups>;

// pipelineSlice adds the depths from k to end to a thread's sums, from sm_80 on: stages are copied while those before them are multiplied. The
// copies of a round are one group, and a round waits for the group of its stage. The barrier tells that all threads' copies are there, that nobody
// reads the stage that is copied over, and that what the operands announced can be read. Deep chunks go to their places just before it. The first rounds
// only copy. All groups go through the rounds of a slice of each depths, those with a shorter one, or none, without work.
template <class Shape, class T, class A, class B>
INLINE void pipelineSlice(typename Shape::Sums& sums, A& a, B& b, int k, int end, int each, T* memory) {
  constexpr int depth = Shape::depth, stages = Shape::stages, ahead = stages - 1;
  constexpr bool deep = isMatrix<A> && isMatrix<B> && Shape::threads < 256;  // else a thread has not the registers
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

// alternateSlice does so before sm_80: a stage is on its way to registers while the one before it is multiplied. The first round only loads.
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

// storeRows writes a pass of a tile from shared memory, or adds it to the slices before it: the threads of a warp write neighbouring columns. A thread
// has its columns alone; those that are left over have none. Of groups, so many have sums, which are added in order; what they add up to stays in shared
// memory, behind the groups', until the last slices.
template <int width, class Shape, class T, bool pools>
INLINE void storeRows(const Output<T, pools>& out, int row, int column, bool first, bool last, int groups, T* memory) {
  constexpr int across = Shape::columns / width, step = Shape::all / across;
  using Some = Vector<T, width>;
  unsigned thread = opaque(threadIdx.x);
  if (Shape::all % across != 0 && thread >= across * step) return;
  int x = thread % across * width, n = column + x;
  if (n >= out.columns) return;
  T* line = out.data + (n / out.inner * out.outer + n % out.inner);
#pragma unroll 2
  for (int y = thread / across; y < Shape::passRows; y += step) {
    int m = row + y;
    if (m >= out.rows) break;
    Some sum = *(const Some*)(memory + Shape::sumAt(y, x)), *to = (Some*)(line + m * out.rowStride);
    if (Shape::groups == 1 && !first) {
      Some before = *to;
#pragma unroll
      for (int j = 0; j < width; j++) sum.v[j] = before.v[j] + sum.v[j];
    }
    if constexpr (Shape::groups > 1) {
      Some* kept = (Some*)(memory + Shape::groups * Shape::memory + Shape::sumAt(y, x));
      if (!first) {
        Some before = *kept;
#pragma unroll
        for (int j = 0; j < width; j++) sum.v[j] = before.v[j] + sum.v[j];
      }
#pragma unroll
      for (int g = 1; g < Shape::groups; g++) {
        if (g >= groups) break;
        Some v = *(const Some*)(memory + g * Shape::memory + Shape::sumAt(y, x));
#pragma unroll
        for (int j = 0; j < width; j++) sum.v[j] += v.v[j];
      }
      if (!last) {
        *kept = sum;
        continue;
      }
    }
    if (last) {
#pragma unroll
      for (int j = 0; j < width; j++) {
        if constexpr (pools)
          sum.v[j] = finish(sum.v[j], out.epilogue, out.bias, out.epilogue & biasPerRow ? m : n + j);
        else
          sum.v[j] = finishMatrix(sum.v[j], out.epilogue, out.bias, m, n + j, out.columns);
      }
    }
    if constexpr (pools && width == 4) {
      if (last && out.epilogue & withPool) {
        out.pooled.store(((const T*)to - out.data) / 4, sum.v, out.epilogue);
        continue;
      }
    }
    *to = sum;
  }
}

template <class Shape, class T, bool pools>
INLINE void storeSums(const typename Shape::Sums& sums, const Output<T, pools>& out, int row, int column, bool first, bool last, T* memory, int group = 0,
                      int groups = 1) {
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

// multiply computes the tile of block blockIdx.x: tiles of a column of tiles are neighbours, which share b.
template <class Shape, class T, bool pools, class A, class B>
INLINE void multiply(A a, B b, Output<T, pools> out, Slices slices, T* memory) {
  int down = (out.rows + Shape::rows - 1) / Shape::rows;
  int row = blockIdx.x % down * Shape::rows, column = blockIdx.x / down * Shape::columns;
  a.begin(row);
  b.begin(column);
  typename Shape::Sums sums;
  if constexpr (Shape::groups > 1) {
    int group = threadIdx.x / Shape::threads;
    for (int slice = 0; slice < slices.count; slice += Shape::groups) {
      int k = minInt((slice + group) * slices.each, slices.depth), end = minInt(k + slices.each, slices.depth), left = slices.count - slice;
      sums.clear();
      pipelineSlice<Shape>(sums, a, b, k, end, slices.each, memory + group * Shape::memory);
      storeSums<Shape>(sums, out, opaque(row), opaque(column), slice == 0, left <= Shape::groups, memory, group, left);
    }
    return;
  }
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
