// A tile of a product on the ordinary cores.
#pragma once

#include "product.cuh"

namespace pollen {

INLINE float multiplyAdd(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
INLINE double multiplyAdd(double a, double b, double c) { return __builtin_fma(a, b, c); }

// Plain is shared memory of elements as they are, by depth. Four more per depth: rows stay aligned for reads of four, and the threads of a warp
// that store 8 depths of 4 neighbours each (operands along the depth) meet 32 different banks.
template <class T>
struct Plain {
  using Value = T;
  using Word = T;
  static constexpr int depths = 1, pad = 4;
  static INLINE int place(int side, int depth, int x) { return depth * (side + pad) + x; }
  static INLINE T pack(const T* v) { return *v; }
};

// Tile is a block's share: rows x columns sums, of which each thread has threadRows x threadColumns, and the depth of a stage.
//
// A thread's sums are in groups of four rows and of four columns, so that it reads four operands at once. A warp is 4 x 8 threads: its
// reads of b are 128 neighbouring bytes in float32, its reads of a are shared by eight threads.
template <class T, int rows_, int columns_, int depth_, int threadRows, int threadColumns>
struct Tile {
  using Layout = Plain<T>;
  static constexpr int rows = rows_, columns = columns_, depth = depth_, words = depth_;
  static constexpr int across = columns / threadColumns, threads = rows / threadRows * across;
  static constexpr int rightHalf = depth * (rows + Layout::pad), stage = rightHalf + depth * (columns + Layout::pad);
  static constexpr int rowGroups = threadRows / 4, columnGroups = threadColumns / 4;

  static constexpr int passes = threadRows, passRows = rows / threadRows;

  // rowOf is the tile's row that row y of a pass is.
  static INLINE int rowOf(int pass, int y) { return 4 * y + pass / 4 * (rows / rowGroups) + pass % 4; }

  struct Sums {
    T v[threadRows][threadColumns];

    static INLINE int row(int group) {
      int thread = threadIdx.x / 32 / (across / 8) * 4 + threadIdx.x % 32 / 8;
      return 4 * thread + group * (rows / rowGroups);
    }
    static INLINE int column(int group) {
      int thread = threadIdx.x / 32 % (across / 8) * 8 + threadIdx.x % 8;
      return 4 * thread + group * (columns / columnGroups);
    }

    INLINE void clear() {
#pragma unroll
      for (int i = 0; i < threadRows; i++)
#pragma unroll
        for (int j = 0; j < threadColumns; j++) v[i][j] = 0;
    }

    INLINE void add(const T* a, const T* b) {
#pragma unroll
      for (int k = 0; k < depth; k++) {
        Vector<T, 4> left[rowGroups], right[columnGroups];
#pragma unroll
        for (int g = 0; g < rowGroups; g++) left[g] = *(const Vector<T, 4>*)(a + Layout::place(rows, k, row(g)));
#pragma unroll
        for (int g = 0; g < columnGroups; g++) right[g] = *(const Vector<T, 4>*)(b + Layout::place(columns, k, column(g)));
#pragma unroll
        for (int i = 0; i < threadRows; i++)
#pragma unroll
          for (int j = 0; j < threadColumns; j++) v[i][j] = multiplyAdd(left[i / 4].v[i % 4], right[j / 4].v[j % 4], v[i][j]);
      }
    }

    // write puts row number pass of each thread's into memory, which has the threads' rows of sums.
    INLINE void write(T* memory, int pitch, int pass) const {
#pragma unroll
      for (int g = 0; g < columnGroups; g++) {
        Vector<T, 4> four;
#pragma unroll
        for (int j = 0; j < 4; j++) four.v[j] = v[pass][4 * g + j];
        *(Vector<T, 4>*)(memory + row(0) / 4 * pitch + column(g)) = four;
      }
    }
  };
};

}  // namespace pollen
