// Convolutions of packed copies in bfloat16 on GPUs of capability 9.0, whose tensor cores read shared memory by themselves: wgmma.
//
// A packed copy here lies in chunks: the first 16 bytes of all its lines (nhwc.cuh) are side by side, then their next 16 bytes, and so on. Eight lines'
// chunks are what a product calls a core matrix. So any eight neighbouring lines are a part of an operand, and another tap is the same, some lines further
// on. A block's part of the image is copied to shared memory once for each block of channels, the filters of a tap at a time in stages.
//
// A tile is 64 filters by some strips, each of which is a product's columns: eight neighbouring pixels of each of some rows that follow one another in an
// image. What reaches beyond the image is computed and dropped.
#pragma once

#include "hopper.cuh"
#include "nhwc.cuh"

namespace pollen {

// StripTile is a block's share: strips of height rows of eight pixels.
template <int height_, int strips_>
struct StripTile {
  static constexpr int rows = 64, height = height_, strips = strips_, width = 8, columns = width * height, threads = 128;
  static constexpr int stages = 4, stage = rows * line;  // words
  static constexpr int blocks = 3;  // of a multiprocessor

  // sumAt is where a sum lies in shared memory: four rows' neighbours are in different banks.
  static constexpr int across = (strips * columns + 31) / 32 * 32;
  static INLINE int sumAt(int row, int column) { return row * across + (column ^ row % 4 * 8); }

  struct Sums {
    float v[strips][columns / 2];

    INLINE void clear() {
#pragma unroll
      for (int s = 0; s < strips; s++)
#pragma unroll
        for (int i = 0; i < columns / 2; i++) v[s][i] = 0;
    }

    INLINE void write(float* memory) const {
      unsigned thread = unknown(threadIdx.x), row = thread / 32 * 16 + thread % 32 / 4, column = thread % 4 * 2;
#pragma unroll
      for (int s = 0; s < strips; s++)
#pragma unroll
        for (int i = 0; i < columns / 4; i++)
          *(Vector<float, 2>*)(memory + sumAt(row + i % 2 * 8, s * columns + column + i / 2 * 8)) = {v[s][2 * i], v[s][2 * i + 1]};
    }
  };
};

// Strips says where they lie in a packed image: strip s is the octet s % octets of a number of rows.
template <class Shape>
struct Strips {
  Lines c;
  int octets, each, count;  // of a row, of an image, of all

  INLINE Strips(const Lines& lines) : c(lines) {
    octets = (c.pixels.Q + 7) / 8;
    each = (unsigned)(c.pixels.P + Shape::height - 1) / Shape::height * octets;
    count = c.pixels.B * each;
  }

  // Strip is its image, and its first pixel's row and column there.
  struct Strip {
    int image, p, q;
  };
  INLINE Strip at(int s) const {
    int image = s / each, rest = s - image * each, p = rest / octets;
    return {image, p * Shape::height, (rest - p * octets) * 8};
  }
  INLINE int place(int s) const {
    Strip from = at(s);
    return (image(from) + from.p) * c.pixels.W + from.q;
  }
  INLINE int image(const Strip& from) const { return from.image * c.pixels.H; }
};

// storeStrips writes a tile's sums from shared memory, two neighbours at once, or the maxima of its windows. A warp has some rows; its lanes have
// neighbours, whose place each of them finds once.
template <class Shape>
INLINE void storeStrips(const Output<float, true>& out, const Strips<Shape>& strips, int row, int first, const float* memory) {
  constexpr int across = Shape::width / 2;
  const Convolution& c = strips.c.pixels;
  bool pooled = out.epilogue & withPool, even = c.Q % 2 == 0;
  int lines = pooled ? Shape::height / 2 : Shape::height, between = pooled ? 2 : 1;
  unsigned thread = unknown(threadIdx.x);
  for (unsigned i = thread % 32; i < (unsigned)(across * lines * Shape::strips); i += 32) {
    int s = i / across / (unsigned)lines, line = i / across % (unsigned)lines * between, column = i % across * 2;
    if (first + s >= strips.count) break;
    auto at = strips.at(first + s);
    int p = at.p + line, q = at.q + column, from = s * Shape::columns + line * Shape::width + column;
    if (p >= c.P || q >= c.Q) continue;
    int to = at.image * out.outer + p * c.Q + q;
    for (int y = thread / 32; y < Shape::rows; y += Shape::threads / 32) {
      int m = row + y;
      if (m >= out.rows) break;
      auto sum = [&](int x) INLINED { return finish(memory[Shape::sumAt(y, from + x)], out.epilogue, out.bias, m); };
      if (pooled) {
        const float window[4] = {sum(0), sum(1), sum(Shape::width), sum(Shape::width + 1)};
        out.pooled.store((at.image * out.outer + m * out.rowStride + p * c.Q) / 4 + q / 2, window, out.epilogue);
      } else if (even) {
        *(Vector<float, 2>*)(out.data + to + m * out.rowStride) = {sum(0), sum(1)};
      } else {
        out.data[to + m * out.rowStride] = sum(0);
        if (q + 1 < c.Q) out.data[to + m * out.rowStride + 1] = sum(1);
      }
    }
  }
}

// convolveStrips computes the tile of block blockIdx.x: its rows are filters w, in groups of 64. Shared memory begins with the stages, followed by size
// lines in chunks; the sums come to lie in the same place. Behind the larger of the two are the barriers.
template <class Shape>
INLINE void convolveStrips(const Output<float, true>& out, const unsigned* x, const unsigned* w, const Lines& c, int size, unsigned* memory) {
  constexpr int stages = Shape::stages, chunk = 4, chunks = line / chunk, apartFilters = 16 * Shape::rows;
  constexpr int sumWords = Shape::rows * Shape::across;
  int words = stages * Shape::stage + size * line;
  auto* barriers = (CopyBarrier*)(memory + (words > sumWords ? words : sumWords));  // of the stages, and of the pixels
  Strips<Shape> strips(c);
  int tiles = (out.rows + Shape::rows - 1) / Shape::rows, tile = blockIdx.x % tiles, first = blockIdx.x / tiles * Shape::strips;
  int last = lesser(first + Shape::strips, strips.count) - 1, begin = strips.place(first);
  int count = lesser(strips.place(last) + (Shape::height - 1) * c.pixels.W + Shape::width + c.reach, c.all()) - begin;
  unsigned* pixels = memory + stages * Shape::stage;
  CopyBarrier* image = barriers + stages;
  if (threadIdx.x == 0) {
    for (int i = 0; i <= stages; i++) initBarrier(barriers + i, 1);
    orderBarriers();
  }
  barrier();
  int rounds = c.blocks * c.taps;
  auto bring = [&](int round) INLINED {
    if (threadIdx.x != 0 || round >= rounds) return;
    CopyBarrier* b = barriers + round % stages;
    expectBytes(b, 4 * Shape::stage);
    copyBulk(memory + round % stages * Shape::stage, w + (round * tiles + tile) * Shape::stage, 4 * Shape::stage, b);
  };
  for (int i = 0; i < stages - 1; i++) bring(i);
  unsigned right[Shape::strips];
#pragma unroll
  for (int s = 0; s < Shape::strips; s++) right[s] = 4 * stages * Shape::stage + 16 * (strips.place(lesser(first + s, last)) - begin);
  typename Shape::Sums sums;
  sums.clear();
  for (int block = 0, round = 0; block < c.blocks; block++) {
    if (threadIdx.x == 0) {
      expectBytes(image, 16 * chunks * count);
      for (int i = 0; i < chunks; i++) copyBulk(pixels + i * size * chunk, x + ((block * chunks + i) * c.all() + begin) * chunk, 16 * count, image);
    }
    waitFor(image, block & 1);
    int tap = c.first, more = c.across;
    for (int i = 0; i < c.taps; i++, round++) {
      waitFor(barriers + round % stages, round / stages & 1);
      groupFence();
#pragma unroll
      for (int k = 0; k < chunks; k += 2) {
        auto left = describe(memory, 4 * (round % stages * Shape::stage) + k * apartFilters, apartFilters, 128);
#pragma unroll
        for (int s = 0; s < Shape::strips; s++)
          multiplyGroup(sums.v[s], left, describe(memory, right[s] + 16 * (tap + k * size), 16 * size, 16 * c.pixels.W));
      }
      groupCommit();
      // The tap before is done, and its filters' stage is free.
      groupWait<1>();
      barrier();
      bring(round + stages - 1);
      tap += c.right;
      if (--more == 0) more = c.across, tap += c.down - c.across * c.right;
    }
    groupWait<0>();
    barrier();
  }
  sums.write((float*)memory);
  barrier();
  storeStrips<Shape>(out, strips, blockIdx.x % tiles * Shape::rows, first, (const float*)memory);
}

}  // namespace pollen
