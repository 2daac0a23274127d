// Convolutions of packed copies in bf16 by wgmma, on GPUs of capability 9.0, whose tensor cores
// read operands from shared memory directly.
//
// Here a packed copy has the chunked layout: the first 16 bytes of all its lines (nhwc.cuh) are
// contiguous, then their second 16 bytes, and so on. Eight lines' chunks, 8 x 16 bytes, are a core
// matrix of wgmma. So any eight neighbouring lines can be rows of an operand, and another tap is
// the same operand at an address that is some lines, of 16 bytes each, further on. A block copies
// its part of the image to shared memory once per block of channels, and the filters one tap at a
// time in stages.
//
// A tile is 64 filters by some strips. A strip is eight neighbouring pixels in each of height
// consecutive rows of an image; it provides the 8 height columns of one wgmma. Pixels beyond the
// image are computed and dropped. Example: for a 14 x 14 output, StripTile<14, 2> computes an image
// by two strips of 8 x 14, and drops the last two columns of the second one.
//
// Each strip has a warpgroup that multiplies; all warpgroups read the same filters. One more warp,
// the producer, issues all copies. mbarriers tell the warpgroups which stages are full, and the
// producer which are free, so warpgroups do not wait for one another before the epilogue.
#pragma once

#include "hopper.cuh"
#include "nhwc.cuh"

namespace pollen {

// StripTile is the output tile of a block: strips of height rows of eight pixels.
template <int height_, int strips_>
struct StripTile {
  static constexpr int rows = 64, height = height_, strips = strips_, width = 8, columns = width * height;
  static constexpr int group = 128, multiplying = group * strips, threads = multiplying + 32;
  static constexpr int stages = 6, stage = rows * lineWords;  // words
  static constexpr int blocks = strips == 1 ? 3 : 2;     // resident blocks per multiprocessor

  // sumAt returns the index of a sum in shared memory. The XOR puts the elements that four rows
  // write at once into different banks.
  static constexpr int across = (strips * columns + 31) / 32 * 32;
  static INLINE int sumAt(int row, int column) { return row * across + (column ^ row % 4 * 8); }

  struct Sums {
    float v[columns / 2];

    INLINE void clear() {
#pragma unroll
      for (int i = 0; i < columns / 2; i++) v[i] = 0;
    }

    // finish applies bias and ReLU to the thread's sums, which belong to two rows of the tile whose
    // first row is top.
    INLINE void finish(const Output<float, true>& out, int top) {
      float bias[2] = {};
      if (out.epilogue & (biasPerColumn | biasPerRow))
        for (int i = 0; i < 2; i++) bias[i] = out.bias[minInt(top + row() + 8 * i, out.rows - 1)];
#pragma unroll
      for (int i = 0; i < columns / 2; i++) v[i] = pollen::finish(v[i], out.epilogue, bias, i / 2 % 2);
    }

    static INLINE int row() {
      unsigned thread = opaque(threadIdx.x);
      return thread % group / 32 * 16 + thread % 32 / 4;
    }

    INLINE void write(float* memory) const {
      unsigned thread = opaque(threadIdx.x), row = Sums::row(), column = thread / group * columns + thread % 4 * 2;
#pragma unroll
      for (int i = 0; i < columns / 4; i++)
        *(Vector<float, 2>*)(memory + sumAt(row + i % 2 * 8, column + i / 2 * 8)) = {v[2 * i], v[2 * i + 1]};
    }
  };
};

// StripBarriers are the block's mbarriers, which lie behind its operands. full and free belong to
// the stages of filters. pixels[i] completes when the chunks of the pixels that product i of a tap
// reads have arrived; pixelsFree, when the pixels' memory may be overwritten by the next block of
// channels.
template <class Shape>
struct StripBarriers {
  static constexpr int products = 4;
  MBarrier full[Shape::stages], free[Shape::stages], pixels[products], pixelsFree;

  INLINE void init() {
    constexpr int warps = Shape::multiplying / 32;
    for (int i = 0; i < Shape::stages; i++) mbarrierInit(full + i, 1), mbarrierInit(free + i, warps);
    for (int i = 0; i < products; i++) mbarrierInit(pixels + i, 1);
    mbarrierInit(&pixelsFree, warps);
    fenceProxyAsync();
  }
};

// Strips maps strips to lines of a packed image. Strip s is octet s % octets of its group of rows:
// an octet is eight neighbouring columns.
template <class Shape>
struct Strips {
  Lines c;
  int octets, each, count;  // octets per row, strips per image, all strips

  INLINE Strips(const Lines& lines) : c(lines) {
    octets = (c.pixels.Q + 7) / 8;
    each = (unsigned)(c.pixels.P + Shape::height - 1) / Shape::height * octets;
    count = c.pixels.B * each;
  }

  // Strip is a strip's image, and the row and column of its first pixel.
  struct Strip {
    int image, p, q;
  };
  INLINE Strip at(int s) const {
    int image = s / each, rest = s - image * each, p = rest / octets;
    return {image, p * Shape::height, (rest - p * octets) * 8};
  }
  INLINE int lineAt(int s) const {
    Strip from = at(s);
    return (image(from) + from.p) * c.pixels.W + from.q;
  }
  INLINE int image(const Strip& from) const { return from.image * c.pixels.H; }
};

// Store selects how the finished sums of two pairs of neighbouring columns are written: Four, as
// four contiguous elements of the output; Window, as the maximum of a pooling window; Pair, the
// first pair as a vector of two; Apart, the first pair as two scalars, of which the second may be
// beyond the image.
enum class Store { Four, Window, Pair, Apart };

// storeColumn writes two pairs of columns, low and high, of the tile's rows to element to of each
// row of the output.
template <Store how, class Shape>
INLINE void storeColumn(const Output<float, true>& out, int row, int low, int high, int to, bool both, const float* memory) {
  constexpr int warps = Shape::multiplying / 32, unrolled = how == Store::Four || how == Store::Window ? 4 : 1;
  using Pair = Vector<float, 2>;
  unsigned warp = opaque(threadIdx.x) / 32;
  int rows = minInt(Shape::rows, out.rows - row);
#pragma unroll unrolled
  for (int y = warp; y < rows; y += warps) {
    int m = row + y;
    Pair a = *(const Pair*)(memory + Shape::sumAt(y, low)), b = {};
    if constexpr (how == Store::Four || how == Store::Window) b = *(const Pair*)(memory + Shape::sumAt(y, high));
    if constexpr (how == Store::Window) {
      const float window[4] = {a.v[0], a.v[1], b.v[0], b.v[1]};
      out.pooled.store(to + m * (out.rowStride / 4), window, out.epilogue);
    } else {
      float* at = out.data + to + m * out.rowStride;
      if constexpr (how == Store::Four)
        *(Vector<float, 4>*)at = {a.v[0], a.v[1], b.v[0], b.v[1]};
      else if constexpr (how == Store::Pair)
        *(Pair*)at = a;
      else {
        at[0] = a.v[0];
        if (both) at[1] = a.v[1];
      }
    }
  }
}

// storeImage writes a tile that is a whole image: neighbouring lanes write neighbouring elements.
template <Store how, class Shape>
INLINE void storeImage(const Output<float, true>& out, const Convolution& c, int image, int row, const float* memory) {
  constexpr int each = 4;
  auto column = [&](int p, int q) INLINED { return q / Shape::width * Shape::columns + p * Shape::width + q % Shape::width; };
  unsigned across = how == Store::Window ? c.Q / 2 : c.Q, lane = opaque(threadIdx.x) % 32;
  for (unsigned i = lane; i < (unsigned)(c.P * c.Q / each); i += 32) {
    if constexpr (how == Store::Window) {
      int p = i / across * 2, q = i % across * 2;
      storeColumn<how, Shape>(out, row, column(p, q), column(p + 1, q), image * out.outer / each + i, true, memory);
    } else {
      unsigned at = i * each, next = at + 2;
      storeColumn<how, Shape>(out, row, column(at / across, at % across), column(next / across, next % across), image * out.outer + at, true, memory);
    }
  }
}

// storeStrips writes a tile's sums from shared memory, or the maxima of its pooling windows. A warp
// has some rows; each lane computes the destination of its columns once.
template <class Shape>
INLINE void storeStrips(const Output<float, true>& out, const Strips<Shape>& strips, int row, int first, const float* memory) {
  constexpr int across = Shape::width / 2;
  const Convolution& c = strips.c.pixels;
  bool pooled = out.epilogue & withPool, even = c.Q % 2 == 0;
  if (strips.each == Shape::strips && even && (pooled || out.inChunks())) {
    int image = strips.at(first).image;
    if (pooled)
      storeImage<Store::Window, Shape>(out, c, image, row, memory);
    else
      storeImage<Store::Four, Shape>(out, c, image, row, memory);
    return;
  }
  int lines = pooled ? Shape::height / 2 : Shape::height, between = pooled ? 2 : 1;
  for (unsigned i = opaque(threadIdx.x) % 32; i < (unsigned)(across * lines * Shape::strips); i += 32) {
    int s = i / across / (unsigned)lines, down = i / across % (unsigned)lines * between, column = i % across * 2;
    if (first + s >= strips.count) break;
    auto at = strips.at(first + s);
    int p = at.p + down, q = at.q + column, from = s * Shape::columns + down * Shape::width + column;
    if (p >= c.P || q >= c.Q) continue;
    int to = at.image * out.outer + p * c.Q + q;
    if (pooled)
      storeColumn<Store::Window, Shape>(out, row, from, from + Shape::width, (at.image * out.outer + p * c.Q) / 4 + q / 2, true, memory);
    else if (even)
      storeColumn<Store::Pair, Shape>(out, row, from, from, to, true, memory);
    else
      storeColumn<Store::Apart, Shape>(out, row, from, from, to, q + 1 < c.Q, memory);
  }
}

// produceStrips issues a block's copies in the order of their use: count lines of pixels from x on,
// and the filters from w on, where one tap's filters are step words after the last one's. odd is
// the parity of the stage's free barrier that it waits for.
template <class Shape>
INLINE void produceStrips(const unsigned* x, const unsigned* w, const Lines& c, int size, int count, int step, unsigned* memory, StripBarriers<Shape>* b) {
  constexpr int stages = Shape::stages, chunk = 4, perProduct = lineWords / chunk / StripBarriers<Shape>::products;
  unsigned* pixels = memory + stages * Shape::stage;
  for (int block = 0, round = 0, stage = 0, odd = 1; block < c.blocks; block++)
    for (int tap = 0; tap < c.taps; tap++, round++) {
      if (round >= stages) mbarrierWait(b->free + stage, odd);
      mbarrierArriveExpectTx(b->full + stage, 4 * Shape::stage);
      copyAsyncBulk(memory + stage * Shape::stage, w + round * step, 4 * Shape::stage, b->full + stage);
      if (++stage == stages) stage = 0, odd ^= 1;
      if (tap > 0) continue;
      if (block > 0) mbarrierWait(&b->pixelsFree, (block & 1) ^ 1);
      for (int i = 0; i < lineWords / chunk; i++) {
        MBarrier* here = b->pixels + i / perProduct;
        if (i % perProduct == 0) mbarrierArriveExpectTx(here, perProduct * 16 * count);
        copyAsyncBulk(pixels + i * size * chunk, x + (block * (lineWords / chunk) + i) * c.all() * chunk, 16 * count, here);
      }
    }
}

// multiplyStrip multiplies a warpgroup's strip, whose pixels begin right bytes after memory.
template <class Shape>
INLINE void multiplyStrip(typename Shape::Sums& sums, const Lines& c, int size, unsigned right, unsigned* memory, StripBarriers<Shape>* b) {
  constexpr int stages = Shape::stages, chunks = lineWords / 4, filterChunkStride = 16 * Shape::rows;
  bool first = threadIdx.x % 32 == 0;
  auto multiply = [&](int stage, int tap, int k) INLINED {
    auto left = matrixDescriptor(memory, 4 * stage * Shape::stage + k * filterChunkStride, filterChunkStride, 128);
    wgmma(sums.v, left, matrixDescriptor(memory, right + 16 * (tap + k * size), 16 * size, 16 * c.pixels.W));
  };
  // Waits have shown that the products of the round before are done, so its stage of filters is
  // free.
  auto release = [&](int stage) INLINED {
    warpBarrier();
    if (first) mbarrierArrive(b->free + (stage > 0 ? stage : stages) - 1);
  };
  // stage runs through the ring of filters' stages, and odd is the parity of the phase of its full
  // barrier: it flips each time the ring has been passed.
  for (int block = 0, round = 0, stage = 0, odd = 0; block < c.blocks; block++) {
    int tap = c.first, more = c.across;
    wgmmaFence();
    for (int i = 0; i < c.taps; i++, round++) {
      mbarrierWait(b->full + stage, odd);
      if (i == 0) {
        // Each of the first products waits only for its own chunks of the pixels.
        for (int k = 0; k < chunks; k += 2) {
          mbarrierWait(b->pixels + k / 2, block & 1);
          multiply(stage, tap, k);
        }
        wgmmaCommit();
        if (round > 0) release(stage);  // no products of the block of channels before are pending
      } else {
#pragma unroll
        for (int k = 0; k < chunks; k += 2) multiply(stage, tap, k);
        wgmmaCommit();
        wgmmaWait<1>();
        release(stage);
      }
      if (++stage == stages) stage = 0, odd ^= 1;
      tap += c.right;
      if (--more == 0) more = c.across, tap += c.down - c.across * c.right;
    }
    wgmmaWait<0>();
    warpBarrier();
    if (first) mbarrierArrive(&b->pixelsFree);
  }
}

// convolveStrips computes the tile of block blockIdx.x; its rows are filters w, in groups of 64.
// Shared memory begins with the filters' stages, followed by size lines of pixels in chunks; the
// sums reuse the same memory afterwards. The mbarriers lie behind the larger of the two.
template <class Shape>
INLINE void convolveStrips(const Output<float, true>& out, const unsigned* x, const unsigned* w, const Lines& c, int size, unsigned* memory) {
  constexpr int sumWords = Shape::rows * Shape::across;
  int words = Shape::stages * Shape::stage + size * lineWords;
  auto* barriers = (StripBarriers<Shape>*)(memory + (words > sumWords ? words : sumWords));
  Strips<Shape> strips(c);
  int tiles = (out.rows + Shape::rows - 1) / Shape::rows, tile = blockIdx.x % tiles, first = blockIdx.x / tiles * Shape::strips;
  int last = minInt(first + Shape::strips, strips.count) - 1, begin = strips.lineAt(first);
  if (threadIdx.x == 0) barriers->init();
  barrier();
  int group = firstLane(threadIdx.x / Shape::group);
  if (group == Shape::strips) {
    if (threadIdx.x == Shape::multiplying) {
      // From the first strip's first pixel to the last strip's last one and what its taps reach, at
      // most to the image's end.
      int count = minInt(strips.lineAt(last) + (Shape::height - 1) * c.pixels.W + Shape::width + c.reach, c.all()) - begin;
      produceStrips<Shape>(x + begin * 4, w + tile * Shape::stage, c, size, count, tiles * Shape::stage, memory, barriers);
    }
    barrier();
    barrier();
    return;
  }
  // Groups without a strip of their own multiply the last one again and store nothing.
  int mine = minInt(first + group, last);
  typename Shape::Sums sums;
  sums.clear();
  multiplyStrip<Shape>(sums, c, size, 4 * Shape::stages * Shape::stage + 16 * (strips.lineAt(mine) - begin), memory, barriers);
  sums.finish(out, tile * Shape::rows);
  barrier();
  sums.write((float*)memory);
  barrier();
  storeStrips<Shape>(out, strips, tile * Shape::rows, first, (const float*)memory);
}

}  // namespace pollen
