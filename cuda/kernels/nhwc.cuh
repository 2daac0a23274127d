// Convolutions of packed copies (sm_80): images stored channels-last (NHWC), rounded once to tf32
// or bf16, in lines of 128 bytes that are copied by 16-byte cp.async and read by ldmatrix.
//
// A line is 32 words of one pixel: 64 channels of bf16, or 32 of tf32; missing channels are 0. A
// packed image is [blocks B height width] lines, where blocks are blocks of channels, and includes
// its padding, so every tap of every pixel meets a line. A packed filter is [filters blocks taps]
// lines. The depth of the product runs over blocks, then the taps of each, then its channels, in
// the same order in every tile.
//
// The pixels of a tile need the lines from the first pixel's to the last pixel's, plus those that
// the taps reach. They are copied to shared memory once per block of channels: another tap reads
// the same lines at an offset. For a 3 x 3 filter on an image that is 34 lines wide, tap (r, s) is
// 34 r + s lines further on. So only the filters' lines go through pipeline stages. In shared
// memory lines are 16 bytes further apart than they are long (linePitch), which puts the same 16
// bytes of eight neighbouring lines into different banks.
#pragma once

#include "tensorcore.cuh"
#include "im2col.cuh"

namespace pollen {

constexpr int lineWords = 32, linePitch = lineWords + 4;  // words

// Numbers<Number>::word is how many numbers a 32-bit word holds: 1 of tf32, 2 of bf16.
template <class Number>
struct Numbers {
  static constexpr int word = Number::depth / 8;
};

// Lines maps pixels and taps to lines of a packed image. Tap (r, s) of a pixel is first + r down +
// s right lines after the pixel's own line, reach at most.
struct Lines {
  Convolution pixels;  // one channel, no padding, and the packed image's height and width
  bool windows;
  int blocks, taps, across, first, down, right, reach;

  INLINE int count() const { return pixels.B * pixels.outputs(); }
  INLINE int all() const { return pixels.B * pixels.inputs(); }
  INLINE int lineAt(int n) const {
    Coord p = PixelOfX{pixels, windows}.at(n);
    return p.plane + p.row * pixels.W + p.column;
  }
};

// PackedTile is the output tile of a block: rows filters x columns pixels, of which each warp
// computes warpRows x warpColumns.
template <class Number, int rows_, int columns_, int warpRows, int warpColumns>
struct PackedTile {
  static constexpr int rows = rows_, columns = columns_, across = columns / warpColumns, threads = 32 * across * (rows / warpRows);
  static constexpr int stages = 3, stage = rows * linePitch, passes = 1, passRows = rows, groups = 1, all = threads;
  static constexpr int blocks = 3;  // resident blocks per multiprocessor

  // sumAt returns the index of a sum in shared memory. The XOR puts the elements that four rows
  // write at once into different banks.
  static INLINE int sumAt(int row, int column) { return row * columns + (column ^ row % 4 * 8); }

  // Lane is a thread's warp tile, and its lane in the fragments (tensorcore.cuh).
  struct Lane {
    unsigned warpRow, warpColumn, lane;

    INLINE Lane(unsigned thread) : warpRow(thread / 32 / across * warpRows), warpColumn(thread / 32 % across * warpColumns), lane(thread % 32) {}
  };

  struct Sums {
    float v[warpRows / 16][warpColumns / 8][4];

    INLINE void clear() {
#pragma unroll
      for (int i = 0; i < warpRows / 16; i++)
#pragma unroll
        for (int j = 0; j < warpColumns / 8; j++)
#pragma unroll
          for (int k = 0; k < 4; k++) v[i][j][k] = 0;
    }

    // add multiplies the depth of one line, at one tap. left is the byte offset of the lane's line
    // of the filters, right those of its pixels' lines.
    INLINE void add(void* memory, unsigned left, const unsigned (&right)[warpColumns / 16], int tap) {
#pragma unroll
      for (int k = 0; k < 4; k++) {
        unsigned b[warpColumns / 16][4];
#pragma unroll
        for (int j = 0; j < warpColumns / 16; j++) ldmatrixX4(b[j], memory, right[j] + tap + 32 * k);
#pragma unroll
        for (int i = 0; i < warpRows / 16; i++) {
          unsigned a[4];
          ldmatrixX4(a, memory, left + 16 * 4 * linePitch * i + 32 * k);
#pragma unroll
          for (int j = 0; j < warpColumns / 8; j++) Number::multiply(v[i][j], a, b[j / 2] + j % 2 * 2);
        }
      }
    }

    INLINE void write(float* memory, int) const {
      Lane at(opaque(threadIdx.x));
#pragma unroll
      for (int i = 0; i < warpRows / 8; i++)
#pragma unroll
        for (int j = 0; j < warpColumns / 8; j++) {
          int row = at.warpRow + 8 * i + at.lane / 4, column = at.warpColumn + 8 * j + at.lane % 4 * 2;
          *(Vector<float, 2>*)(memory + sumAt(row, column)) = {v[i / 2][j][i % 2 * 2], v[i / 2][j][i % 2 * 2 + 1]};
        }
    }
  };
};

// Whole and InChunks are the two layouts of a packed copy, by their steps in words: lineStep from a
// line to the next, and chunkStep from a line's 16 bytes to its next 16. Whole lines are
// contiguous; in chunks, the first 16 bytes of all lines come first, then their second 16 bytes
// (nhwcgroup.cuh).
struct Whole {
  static constexpr int lineStep = lineWords, chunkStep = 4;
};
struct InChunks {
  static constexpr int lineStep = 4;
  int chunkStep;
};

// copyLines starts the copies of count lines to shared memory.
template <class Layout = Whole>
INLINE void copyLines(unsigned* to, const unsigned* from, int count, Layout layout = {}) {
  // Eight threads copy the eight 16-byte chunks of a line: full sectors of global memory.
  int chunk = threadIdx.x % 8, step = blockDim.x / 8;
  for (int i = threadIdx.x / 8; i < count; i += step)
    copyAsync16(to + i * linePitch + 4 * chunk, from + i * layout.lineStep + chunk * layout.chunkStep, true);
}

// convolvePacked computes the tile of block blockIdx.x: its rows are filters w, its columns pixels.
// Shared memory holds the filters' stages, followed by the pixels' lines; it must also have room
// for the tile's sums.
template <class Shape>
INLINE void convolvePacked(const Output<float, true>& out, const unsigned* x, const unsigned* w, Lines c, unsigned* memory) {
  constexpr int ahead = Shape::stages - 1, step = Shape::threads / 8;
  int tiles = (out.rows + Shape::rows - 1) / Shape::rows;
  int row = blockIdx.x % tiles * Shape::rows, column = blockIdx.x / tiles * Shape::columns;
  int last = minInt(column + Shape::columns, out.columns) - 1, begin = c.lineAt(column), count = c.lineAt(last) - begin + 1 + c.reach;
  unsigned* pixels = memory + Shape::stages * Shape::stage;
  typename Shape::Lane at(threadIdx.x);
  // ldmatrix loads four matrices of 8 x 16 bytes: of the filters, rows 0-7 and 8-15, then both with
  // the next 16 bytes of depth; of the pixels, the two halves of 32 bytes of 8 pixels, then of the
  // next 8.
  unsigned left = 4 * ((at.warpRow + at.lane % 16) * linePitch + at.lane / 16 * 4), right[sizeof(Shape::Sums::v[0]) / 32];
#pragma unroll
  for (int j = 0; j < (int)(sizeof(right) / 4); j++) {
    int n = minInt(column + at.warpColumn + 16 * j + at.lane % 8 + at.lane / 16 * 8, last);
    right[j] = 4 * (Shape::stages * Shape::stage + (c.lineAt(n) - begin) * linePitch + at.lane / 8 % 2 * 4);
  }
  int chunk = threadIdx.x % 8 * 4, mine = threadIdx.x / 8, each = c.blocks * c.taps * lineWords;
  const unsigned* filters = w + (row + mine) * each + chunk;
  typename Shape::Sums sums;
  sums.clear();
  for (int block = 0; block < c.blocks; block++) {
    barrier();
    copyLines(pixels, x + (block * c.all() + begin) * lineWords, count);
    // The pipeline of the filters' lines, Shape::stages deep: round r multiplies the lines of tap
    // r, and issues the copies of tap r + ahead. Rounds below 0 only copy.
    int tap = c.first, more = c.across;
    for (int round = -ahead, next = 0; round < c.taps; round++) {
      copyAsyncWait<ahead - 1>();
      barrier();
      int now = next + 1 == Shape::stages ? 0 : next + 1, coming = round + ahead;
      if (coming < c.taps) {
        unsigned* to = memory + next * Shape::stage + mine * linePitch + chunk;
        const unsigned* from = filters + (block * c.taps + coming) * lineWords;
#pragma unroll
        for (int i = 0; i < Shape::rows; i += step)
          if (i + step <= Shape::rows || mine < Shape::rows - i) copyAsync16(to + i * linePitch, from + i * each, row + mine + i < out.rows);
      }
      copyAsyncCommit();
      if (round >= 0) {
        sums.add(memory, left + 4 * now * Shape::stage, right, 4 * linePitch * tap);
        tap += c.right;
        if (--more == 0) more = c.across, tap += c.down - c.across * c.right;
      }
      next = now;
    }
  }
  storeSums<Shape>(sums, out, row, column, true, true, (float*)memory);
}

}  // namespace pollen
