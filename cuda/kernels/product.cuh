// Matrix products by blocks, each of which makes a tile of the result,
//
//     out(m, n) = sum over k of a(m, k) b(k, n)
//
// whatever the operands are: matrices, or images seen through a filter (window.cuh). An operand is a type with
//
//     alongDepth           whether elements that are neighbours in depth are neighbours in memory, else those along the tile's side
//     begin(x)             before all else: the tile's first row of a, or first column of b
//     advance(k, end, i)   announces the depths from k on, less than end, as stage i, which is 0 or 1; a barrier follows
//     at(x, d, k, i)       element x of the tile at depth k + d of stage i, which begins at k; 0 outside the operand
//
// How a tile is multiplied is its Shape's: tile.cuh has that of the ordinary cores, tensorcore.cuh that of the tensor cores.
//
// The depth is cut into slices that the shape alone determines. An element's slices are summed from zero, each in order of depth, and then
// added in order: by one block after the other's, or by a block each into workspace and a kernel that adds (slices.cu), with the same bits.
#pragma once

#include "pollen.cuh"

#define INLINE __device__ inline __attribute__((always_inline))

namespace pollen {

INLINE int lesser(int a, int b) { return a < b ? a : b; }

// unknown is v, which the compiler cannot tell: what is computed from it stays where it is, out of a loop's registers.
INLINE int unknown(int v) {
  asm volatile("" : "+r"(v));
  return v;
}

// Vector is read and written at once.
template <class T, int n>
struct alignas(n * sizeof(T) < 16 ? n * sizeof(T) : 16) Vector {
  T v[n];
};

// Epilogue is what is done to a sum before it is stored.
enum Epilogue { biasPerColumn = 1, biasPerRow = 2, withReLU = 4 };

template <class T>
INLINE T finish(T sum, int epilogue, const T* bias, int at) {
  if (epilogue & (biasPerColumn | biasPerRow)) sum += bias[at];
  return epilogue & withReLU && sum <= 0 ? T(0) : sum;
}

// Output says where element (m, n) of a product lies: columns come in runs of inner, outer apart. A matrix has one run.
template <class T>
struct Output {
  T* data;
  const T* bias;
  int rows, columns, rowStride, inner, outer, epilogue;
};

// Fetch is a thread's part of a stage of an operand, on its way from global to shared memory. There, a word is one or several depths' elements of a
// row or column; Layout says how they are packed and where they lie.
template <class Layout, bool alongDepth, int side, int words, int threads>
struct Fetch {
  static constexpr int count = side * words / threads;
  typename Layout::Value value[count][Layout::depths];

  static INLINE int x(int i) { return (threadIdx.x + i * threads) / (alongDepth ? words : 1) % side; }
  static INLINE int word(int i) { return (threadIdx.x + i * threads) / (alongDepth ? 1 : side) % words; }

  template <class Operand>
  INLINE void load(const Operand& operand, int from, int parity) {
    from = unknown(from);
#pragma unroll
    for (int i = 0; i < count; i++)
#pragma unroll
      for (int j = 0; j < Layout::depths; j++) value[i][j] = operand.at(x(i), word(i) * Layout::depths + j, from, parity);
  }

  INLINE void store(typename Layout::Word* stage) const {
#pragma unroll
    for (int i = 0; i < count; i++) stage[Layout::place(side, word(i), x(i))] = Layout::pack(value[i]);
  }
};

// Slices is the cut of a product's depth: so many of each depths, the last one shorter. With as many blocks along y each has one, and out is
// workspace [slices, out's elements], else a block has all in order.
struct Slices {
  int depth, count, each;
};

// Stages is a block's shared memory.
template <class Shape>
struct alignas(16) Stages {
  typename Shape::Layout::Word words[2 * Shape::stage];
};

// multiplySlice adds the depths from k to end to a thread's sums. While one stage is multiplied, the next one is on its way to registers.
template <class Shape, class A, class B>
INLINE void multiplySlice(typename Shape::Sums& sums, A& a, B& b, int k, int end, typename Shape::Layout::Word* memory) {
  Fetch<typename Shape::Layout, A::alongDepth, Shape::rows, Shape::words, Shape::threads> left;
  Fetch<typename Shape::Layout, B::alongDepth, Shape::columns, Shape::words, Shape::threads> right;
  constexpr int depth = Shape::depth;
  a.advance(k, end, 0);
  b.advance(k, end, 0);
  barrier();
  // The first round only loads.
  for (int from = k - depth, stage = 1; from < end; from += depth, stage ^= 1) {
    auto *now = memory + stage * Shape::stage, *next = memory + (stage ^ 1) * Shape::stage;
    bool more = from + depth < end;
    if (more) {
      left.load(a, from + depth, stage ^ 1);
      right.load(b, from + depth, stage ^ 1);
    }
    if (from >= k) sums.add(now, now + Shape::rightHalf);
    if (more) {
      a.advance(from + 2 * depth, end, stage);
      b.advance(from + 2 * depth, end, stage);
      left.store(next);
      right.store(next + Shape::rightHalf);
    }
    barrier();
  }
}

// storeSums writes a tile, or adds it to the slices before it: some rows at a time, by way of shared memory, so that the threads of a warp
// write neighbouring columns.
template <class Shape, class T>
INLINE void storeSums(const typename Shape::Sums& sums, const Output<T>& out, int row, int column, bool first, bool last, T* memory) {
  constexpr int columns = Shape::columns, pitch = columns + Shape::Layout::pad;
  static_assert(Shape::threads % columns == 0 && Shape::passRows * pitch <= 2 * Shape::stage, "a thread has one column, a pass fits into the stages");
  int x = threadIdx.x % columns, n = column + x;
  T* line = out.data + n / out.inner * out.outer + n % out.inner;
#pragma unroll
  for (int pass = 0; pass < Shape::passes; pass++) {
    sums.write(memory, pitch, pass);
    barrier();
    for (int y = threadIdx.x / columns; y < Shape::passRows; y += Shape::threads / columns) {
      int m = row + Shape::rowOf(pass, y);
      if (m >= out.rows || n >= out.columns) continue;
      T* to = line + m * out.rowStride;
      T sum = memory[y * pitch + x];
      if (!first) sum = *to + sum;
      *to = last ? finish(sum, out.epilogue, out.bias, out.epilogue & biasPerRow ? m : n) : sum;
    }
    barrier();
  }
}

// multiply computes the tile of block blockIdx.x: tiles of a column of tiles are neighbours, which share b. memory is of two stages.
template <class Shape, class T, class A, class B>
INLINE void multiply(A a, B b, Output<T> out, Slices slices, typename Shape::Layout::Word* memory) {
  int down = (out.rows + Shape::rows - 1) / Shape::rows;
  int row = blockIdx.x % down * Shape::rows, column = blockIdx.x / down * Shape::columns;
  a.begin(row);
  b.begin(column);
  typename Shape::Sums sums;
  bool split = gridDim.y > 1;
  if (split) out.data += (long long)blockIdx.y * out.rows * out.columns;
  for (int slice = blockIdx.y; slice < slices.count; slice += gridDim.y) {
    int k = slice * slices.each;
    sums.clear();
    multiplySlice<Shape>(sums, a, b, k, lesser(k + slices.each, slices.depth), memory);
    storeSums<Shape>(sums, out, unknown(row), unknown(column), split || slice == 0, !split && slice == slices.count - 1, (T*)memory);
  }
}

// Matrix is an operand in memory: [depth, extent], or [extent, depth] when it lies alongDepth_.
template <class T, bool alongDepth_>
struct Matrix {
  static constexpr bool alongDepth = alongDepth_;
  const T* data;
  int extent, depth;
  int first, end;

  INLINE void begin(int x) { first = x; }
  INLINE void advance(int, int to, int) { end = to; }
  INLINE T at(int x, int d, int k, int) const {
    x += first, d += k;
    return loadIf(x < extent & d < end, data + (alongDepth ? x * depth + d : d * extent + x));
  }
};

}  // namespace pollen
