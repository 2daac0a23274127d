// The gradient of a convolution's filter from packed copies (nhwc.cuh). The depth of this product
// are the pixels, each of which is a line of shared memory.
//
//     dw(k, tap c) = sum over pixels of dout(k, pixel) x(pixel and tap, c)
//
// A block computes 64 filters by one block of channels, with one warp per tap: all warps use the
// same lines, at different offsets. mma needs the depth contiguous, but here channels are. In bf16,
// transposing ldmatrix gives the fragments. In tf32 a lane loads four neighbouring channels of a
// pixel, which are fragments with rows and columns renumbered as in tensorcore.cuh.
#pragma once

#include "nhwc.cuh"

namespace pollen {

constexpr int stagePixels = 64, filterRows = 64;

// PixelLines are the lines of a stage's pixel in both packed images. dout is negative for a pixel
// behind the end of the slice.
struct PixelLines {
  int x, dout;
};

template <class Number>
struct FilterSums;

template <>
struct FilterSums<BF16> {
  static constexpr int channels = 64, leftPitch = linePitch;
  float v[4][8][4];

  // add multiplies a stage. left and right are the words of shared memory where the stage's
  // gradient and image begin; right includes the warp's tap.
  INLINE void add(void* memory, int left, int right, const PixelLines* places) {
    unsigned lane = (unsigned)opaque(threadIdx.x) % 32;
    left = 4 * (left + (lane % 8 + lane / 16 * 8) * leftPitch + lane / 8 % 2 * 4), right = 4 * (right + lane / 16 * 4);
#pragma unroll
    for (int k = 0; k < stagePixels; k += 16) {
      unsigned b[4][4];
      // A lane passes the address of one pixel's line, found in the table, so a stage's pixels may
      // come from several rows of the image.
      int place = right + 4 * linePitch * places[k + lane % 16].x;
#pragma unroll
      for (int j = 0; j < 4; j++) ldmatrixX4Trans(b[j], memory, place + 32 * j);
#pragma unroll
      for (int i = 0; i < 4; i++) {
        unsigned a[4];
        ldmatrixX4Trans(a, memory, left + 4 * k * leftPitch + 32 * i);
#pragma unroll
        for (int j = 0; j < 8; j++) BF16::multiply(v[i][j], a, b[j / 2] + j % 2 * 2);
      }
    }
  }

  // each calls f(filter, channel, neighbours) for each vector of the lane's sums.
  template <class F>
  INLINE void each(F f) const {
    unsigned lane = threadIdx.x % 32;
#pragma unroll
    for (int i = 0; i < 8; i++)
#pragma unroll
      for (int j = 0; j < 8; j++) f(8 * i + lane / 4, 8 * j + lane % 4 * 2, Vector<float, 2>{v[i / 2][j][i % 2 * 2], v[i / 2][j][i % 2 * 2 + 1]});
  }
};

template <>
struct FilterSums<TF32> {
  static constexpr int channels = 32, leftPitch = 2 * lineWords + 4;
  float v[4][4][4];

  INLINE void add(void* memory, int left, int right, const PixelLines* places) {
    using Four = Vector<unsigned, 4>;
    unsigned thread = opaque(threadIdx.x), pair = thread % 4, chunk = thread % 32 / 8 + thread / 4 % 2 * 4;
    const unsigned* words = (const unsigned*)memory;
    left += pair * leftPitch + 4 * chunk, right += 4 * chunk;
#pragma unroll
    for (int k = 0; k < stagePixels; k += 8) {
      Four b[2], a[2][2];
#pragma unroll
      for (int i = 0; i < 2; i++) {
        b[i] = *(const Four*)(words + right + linePitch * places[k + 4 * i + pair].x);
#pragma unroll
        for (int h = 0; h < 2; h++) a[h][i] = *(const Four*)(words + left + (k + 4 * i) * leftPitch + lineWords * h);
      }
#pragma unroll
      for (int h = 0; h < 4; h++) {
        const auto& four = a[h / 2];
        const unsigned rows[4] = {four[0].v[h % 2 * 2], four[0].v[h % 2 * 2 + 1], four[1].v[h % 2 * 2], four[1].v[h % 2 * 2 + 1]};
#pragma unroll
        for (int j = 0; j < 4; j++) {
          const unsigned columns[2] = {b[0].v[j], b[1].v[j]};
          TF32::multiply(v[h][j], rows, columns);
        }
      }
    }
  }

  template <class F>
  INLINE void each(F f) const {
    unsigned pair = threadIdx.x % 4, chunk = threadIdx.x % 32 / 8 + threadIdx.x / 4 % 2 * 4;
#pragma unroll
    for (int h = 0; h < 4; h++)
#pragma unroll
      for (int k = 0; k < 4; k++) {
        const auto& from = v[h];
        f(32 * (h / 2) + 4 * chunk + h % 2 * 2 + k / 2, 16 * (k % 2) + 4 * pair, Vector<float, 4>{from[0][k], from[1][k], from[2][k], from[3][k]});
      }
  }
};

// PackedGradient describes how blocks go through the gradient dout [blocks B height width] and the
// image x.
struct PackedGradient {
  Lines x, dout;
  int filters, each;  // pixels per slice, a multiple of stagePixels

  // places stores the lines of a stage's pixels. Pixels from end on contribute zeros.
  INLINE void places(PixelLines* to, int from, int end) const {
    for (int i = threadIdx.x; i < stagePixels; i += blockDim.x) {
      int n = from + i;
      to[i] = {x.lineAt(minInt(n, end - 1)), n < end ? dout.lineAt(n) : -1};
    }
  }
};

// FilterMemory is the layout of a block's shared memory, with two stages. size is the maximum
// number of a stage's lines of x.
template <class Sums>
struct FilterMemory {
  static constexpr int doutAt = 4 * stagePixels * 2, xAt = doutAt + 2 * stagePixels * Sums::leftPitch;  // words

  PixelLines* places;  // [4][stagePixels]
  unsigned* dout;      // [2][stagePixels][leftApart]
  unsigned* x;         // [2][size][apart]
  int size;

  INLINE FilterMemory(unsigned* memory, int size)
      : places((PixelLines*)memory), dout(memory + doutAt), x(memory + xAt), size(size) {}
};

// convolvePackedFilter computes the slices blockIdx.y, blockIdx.y + gridDim.y, ... of partial
// [slices filters taps channels]. The gradient's first pixel is line doutFirst.
template <class Number, class Left = Whole, class Right = Whole>
INLINE void convolvePackedFilter(float* partial, const unsigned* dout, int doutFirst, const unsigned* x, const PackedGradient& c, int size,
                                 unsigned* memory, Left left = {}, Right right = {}) {
  using Sums = FilterSums<Number>;
  FilterMemory<Sums> shared(memory, size);
  int warps = blockDim.x / 32, warp = threadIdx.x / 32, groups = (c.x.taps + warps - 1) / warps;
  int group = blockIdx.x % groups * warps, block = blockIdx.x / groups % c.x.blocks, row = blockIdx.x / groups / c.x.blocks * filterRows;
  // The block's taps reach from line offset lowest to highest; this warp's tap is at own.
  int lowest = 0, highest = 0, own = 0;
  for (int i = 0; i < warps && group + i < c.x.taps; i++) {
    int at = (group + i) / c.x.across * c.x.down + (group + i) % c.x.across * c.x.right;
    lowest = i == 0 ? at : minInt(lowest, at);
    highest = i == 0 || at > highest ? at : highest;
    if (i == warp) own = at;
  }
  x += block * c.x.all() * lineWords + lowest * right.lineStep;
  dout += doutFirst * left.lineStep;
  int channels = c.x.blocks * Sums::channels, total = c.x.count();
  bool here = group + warp < c.x.taps;
  for (int slice = blockIdx.y; slice * c.each < total; slice += gridDim.y) {
    int from = slice * c.each, end = minInt(from + c.each, total), rounds = (end - from + stagePixels - 1) / stagePixels;
    Sums sums;
#pragma unroll
    for (auto& some : sums.v)
#pragma unroll
      for (auto& few : some)
#pragma unroll
        for (float& v : few) v = 0;
    barrier();
    c.places(shared.places, from, end);
    // Two stages: while one is multiplied, the next is being copied, and the table of lines of the
    // one after that is made.
    for (int round = -1; round < rounds; round++) {
      copyAsyncWait<0>();
      barrier();
      int coming = round + 1;
      if (coming < rounds) {
        const PixelLines* places = shared.places + (coming & 3) * stagePixels;
        int first = places[0].x;
        copyLines(shared.x + (coming & 1) * size * linePitch, x + first * right.lineStep, places[stagePixels - 1].x - first + 1 + highest - lowest, right);
        constexpr int chunks = (Sums::leftPitch - 4) / 4;
        unsigned* to = shared.dout + (coming & 1) * stagePixels * Sums::leftPitch;
        for (int i = threadIdx.x; i < stagePixels * chunks; i += blockDim.x) {
          int pixel = i / chunks, chunk = i % chunks, gradient = row / Sums::channels + chunk / 8, place = places[pixel].dout;
          bool there = place >= 0 & gradient < c.dout.blocks;
          int from = gradient * c.dout.all() * lineWords + place * left.lineStep + chunk % 8 * left.chunkStep;
          copyAsync16(to + pixel * Sums::leftPitch + 4 * chunk, dout + (there ? from : 0), there);
        }
        c.places(shared.places + (coming + 1 & 3) * stagePixels, from + (coming + 1) * stagePixels, end);
      }
      copyAsyncCommit();
      if (round >= 0 && here) {
        const PixelLines* places = shared.places + (round & 3) * stagePixels;
        int leftAt = FilterMemory<Sums>::doutAt + (round & 1) * stagePixels * Sums::leftPitch;
        sums.add(memory, leftAt, FilterMemory<Sums>::xAt + ((round & 1) * size + own - lowest - places[0].x) * linePitch, places);
      }
    }
    if (!here) continue;
    float* to = partial + (gridDim.y > 1 ? (long long)slice * c.filters * c.x.taps * channels : 0);
    sums.each([&](int filter, int channel, auto v) INLINED {
      if (row + filter >= c.filters) return;
      auto* at = (decltype(v)*)(to + ((row + filter) * c.x.taps + group + warp) * channels + block * Sums::channels + channel);
      if (gridDim.y == 1 && slice > 0) {
        auto before = *at;
#pragma unroll
        for (int i = 0; i < (int)(sizeof(v) / 4); i++) v.v[i] = before.v[i] + v.v[i];
      }
      *at = v;
    });
  }
}

}  // namespace pollen

// PACKED_FILTER defines the gradient of a filter, into partial [slices filters taps channels]; if
// gridDim.y is 1, all slices are added into the first one. A block has one warp per tap, at most
// the macro's argument warps, and size lines of x per stage. The last arguments are the layouts of
// the gradient and the image.
#define PACKED_FILTER(ending, Number, warps, ...)                                                                                                     \
  KERNEL(conv2d_nhwc_filter_##ending, 32 * warps, 2)                                                                                                  \
  (Out<float> partial, In<unsigned> dout, In<unsigned> x, int filters, int B, int height, int width, int P, int Q, int strideH, int strideW,          \
   int blocks, int taps, int across, int down, int right, int doutHeight, int doutWidth, int doutFirst, int doutBlocks, int size, int each) {         \
    DYNAMIC_SHARED(Line, memory);                                                                                                                     \
    Lines image = {{B, 1, height, width, 1, 1, 1, P, Q, strideH, strideW, 0, 0, 1, 1}, false, blocks, taps, across, 0, down, right, 0};               \
    Lines gradient = {{B, 1, doutHeight, doutWidth, 1, 1, 1, P, Q, 1, 1, 0, 0, 1, 1}, false, doutBlocks, 1, 1, 0, 0, 0, 0};                           \
    convolvePackedFilter<Number>(partial.at(), dout.at(), doutFirst, x.at(), {image, gradient, filters, each}, size, (unsigned*)memory, __VA_ARGS__); \
  }
