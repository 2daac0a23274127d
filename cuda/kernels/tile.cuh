// A product tile on the CUDA cores.
#pragma once

#include "product.cuh"

namespace pollen {

INLINE float multiplyAdd(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
INLINE double multiplyAdd(double a, double b, double c) { return __builtin_fma(a, b, c); }

// Tile is the output tile of a block: rows x columns sums, of which each thread computes threadRows
// x threadColumns; depth is the depth of a stage.
//
// A thread's sums form groups of four rows by four columns, so that it reads four operands at once.
// A warp is 4 x 8 threads: its reads of b are 8 neighbouring chunks, its reads of a are shared by
// eight threads.
template <class T, int rows_, int columns_, int depth_, int stages_, int threadRows, int threadColumns>
struct Tile {
  static constexpr int rows = rows_, columns = columns_, depth = depth_, stages = stages_;
  static constexpr int across = columns / threadColumns, threads = rows / threadRows * across, groups = 1, all = threads;
  static constexpr int blocks = stages == 2 || threads < 128 ? 1 : threads < 256 ? 3 : 2;  // resident blocks per multiprocessor, which has 65536 registers
  static constexpr int left = depth * rows, stage = depth * (rows + columns);
  static constexpr int rowGroups = threadRows / 4, columnGroups = threadColumns / 4;
  static constexpr int passes = rowGroups, passRows = rows / passes;
  static constexpr int memory = stages * stage > passRows * columns ? stages * stage : passRows * columns;

  // sumAt returns the index of a pass's sum in shared memory.
  static INLINE int sumAt(int row, int column) { return row * columns + column; }

  struct Sums {
    T v[threadRows][threadColumns];

    // row and column return the chunk of a thread's first group.
    static INLINE int row(unsigned thread) { return thread / 32 / (across / 8) * 4 + thread % 32 / 8; }
    static INLINE int column(unsigned thread) { return thread / 32 % (across / 8) * 8 + thread % 8; }

    INLINE void clear() {
#pragma unroll
      for (int i = 0; i < threadRows; i++)
#pragma unroll
        for (int j = 0; j < threadColumns; j++) v[i][j] = 0;
    }

    // add multiplies a stage: for each depth, a thread reads its chunks of a and b and makes an
    // outer product.
    INLINE void add(const T* a, const T* b) {
      using Chunk = Vector<T, 4>;
      int row = Sums::row(opaque(threadIdx.x)), column = Sums::column(opaque(threadIdx.x));
#pragma unroll
      for (int k = 0; k < depth; k++) {
        Chunk left[rowGroups], right[columnGroups];
#pragma unroll
        for (int g = 0; g < rowGroups; g++) left[g] = *(const Chunk*)(a + k * rows + 4 * (row ^ k % 8) + g * passRows);
#pragma unroll
        for (int g = 0; g < columnGroups; g++) right[g] = *(const Chunk*)(b + k * columns + 4 * (column ^ k % 8) + g * (columns / columnGroups));
#pragma unroll
        for (int i = 0; i < threadRows; i++)
#pragma unroll
          for (int j = 0; j < threadColumns; j++) v[i][j] = multiplyAdd(left[i / 4].v[i % 4], right[j / 4].v[j % 4], v[i][j]);
      }
    }

    // write stores one group of each thread's rows; pass is the group.
    INLINE void write(T* memory, int pass) const {
      int row = 4 * Sums::row(opaque(threadIdx.x)), column = 4 * Sums::column(opaque(threadIdx.x));
#pragma unroll
      for (int i = 0; i < 4; i++)
#pragma unroll
        for (int g = 0; g < columnGroups; g++) {
          const T* from = v[4 * pass + i] + 4 * g;
          *(Vector<T, 4>*)(memory + sumAt(row + i, column + g * (columns / columnGroups))) = {from[0], from[1], from[2], from[3]};
        }
    }
  };
};

}  // namespace pollen
