// 3 x 3 convolutions from 16 to 16 channels or from 32 to 32, in bf16 (sm_80). They are limited by
// memory, so these kernels read and write each float32 image once. Packed copies (nhwc.cuh) would be
// padded to 64 channels.
//
// A block processes a band of an image's rows at a time. It rounds the band and the pixels around it
// on their way to shared memory, channels last: a line is the channels of one pixel, 32 or 64 bytes.
// Another tap is the same lines at an offset, as in nhwc.cuh. The 16-byte chunks of a line are
// permuted, by place(), so that ldmatrix reads eight neighbouring lines from different banks.
#pragma once

#include "tensorcore.cuh"

namespace pollen {

// Band is a band of rows of one image with a border of zeros.
struct Band {
  int height, width, rows;  // of the image; rows of a band at most
  int image, first, count;  // this band's first row, and its rows

  INLINE Band(int height, int width, int rows, int number) : height(height), width(width), rows(rows) {
    int bands = (height + rows - 1) / rows;
    image = number / bands, first = number % bands * rows, count = minInt(rows, height - first);
  }
  INLINE int pixels() const { return count * width; }

  // line returns the line of a pixel's upper left neighbour.
  INLINE int line(int pixel) const { return pixel / width * (width + 2) + pixel % width; }
};

// FewChannels are lines of some channels in shared memory.
template <int channels>
struct FewChannels {
  static constexpr int chunks = channels / 8, words = channels / 2;

  // place returns the byte at which a chunk of a line begins.
  static INLINE unsigned place(int line, int chunk) { return 4 * words * line + 16 * (chunk ^ (line / (8 / chunks) & (chunks - 1))); }

  // load rounds rows [first, last) of an image [channels height width] to lines, in each of which
  // border lines come before and after the image's. Rows outside of the image are 0.
  static INLINE void load(unsigned* lines, const float* x, int height, int width, int first, int last, int border) {
    // A warp transposes 16 channels of 16 pixels. Lanes are 8 pairs of channels by 4 quads of pixels.
    int warp = threadIdx.x / 32, warps = blockDim.x / 32, pair = threadIdx.x % 8, quad = threadIdx.x % 32 / 8, across = (width + 15) / 16;
    int pitch = width + 2 * border, all = (last - first) * across * (channels / 16);
    constexpr int together = 2;  // loads of each lane that are under way at once, twice
    for (int begin = warp; begin < all; begin += together * warps) {
      Vector<float, 4> a[together] = {}, b[together] = {};
      int line[together], chunk[together];
#pragma unroll
      for (int k = 0; k < together; k++) {
        int n = begin + k * warps, row = n / across / (channels / 16), group = n / across % (channels / 16), column = n % across * 16 + 4 * quad;
        line[k] = n < all && column < width ? row * pitch + column + border : -1, chunk[k] = 2 * group + pair / 4;
        if ((line[k] >= 0) & ((unsigned)(first + row) < (unsigned)height)) {
          const float* at = x + ((group * 16 + 2 * pair) * height + first + row) * width + column;
          a[k] = *(const Vector<float, 4>*)at;
          b[k] = *(const Vector<float, 4>*)(at + height * width);
        }
      }
#pragma unroll
      for (int k = 0; k < together; k++) {
        // Quads of pixels begin with different pixels, which are in different banks.
        unsigned w0 = packBF16(a[k].v[0], b[k].v[0]), w1 = packBF16(a[k].v[1], b[k].v[1]);
        unsigned w2 = packBF16(a[k].v[2], b[k].v[2]), w3 = packBF16(a[k].v[3], b[k].v[3]);
        unsigned v0 = quad & 1 ? w1 : w0, v1 = quad & 1 ? w2 : w1, v2 = quad & 1 ? w3 : w2, v3 = quad & 1 ? w0 : w3;
        const unsigned turned[4] = {quad & 2 ? v2 : v0, quad & 2 ? v3 : v1, quad & 2 ? v0 : v2, quad & 2 ? v1 : v3};
        if (line[k] < 0) continue;
#pragma unroll
        for (int i = 0; i < 4; i++) lines[place(line[k] + (i + quad) % 4, chunk[k]) / 4 + pair % 4] = turned[i];
      }
    }
    for (int n = threadIdx.x; n < (last - first) * 2 * border * words; n += blockDim.x) {
      int row = n / words / 2, line = row * pitch + n / words % 2 * (width + 1);
      lines[line * words + n % words] = 0;
    }
  }
};

// convolveFew computes y [B filters height width] = x [B channels height width] * w, with a bias and a
// ReLU if epilogue has them. w is a packed filter of whole lines (nhwcpack.cuh), [filters taps] or, if
// backwards, the transposed one, whose taps run backwards. Blocks take bands in turn.
template <int channels, int filters>
struct FewForward {
  using Lines = FewChannels<channels>;
  static constexpr int threads = 256, taps = 9, left = filters * taps * Lines::words, lineFrom = 32;
  static constexpr int groups = channels == 16 ? 4 : 2;  // of 16 pixels, which a warp has at once

  static INLINE void run(float* y, const float* x, const unsigned* w, const float* bias, int B, int height, int width, int rows, int backwards, int epilogue,
                         unsigned* memory) {
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32, bands = (height + rows - 1) / rows;
    unsigned* lines = memory + left;
    for (int n = threadIdx.x; n < left; n += threads) {
      int line = n / Lines::words, word = n % Lines::words;
      memory[Lines::place(line, word / 4) / 4 + word % 4] = w[line * lineFrom + word];
    }
    for (int number = blockIdx.x; number < B * bands; number += gridDim.x) {
      Band band(height, width, rows, number);
      barrier();
      Lines::load(lines, x + (long long)band.image * channels * height * width, height, width, band.first - 1, band.first + band.count + 1, 1);
      barrier();
      for (int begin = warp * 16 * groups; begin < band.pixels(); begin += threads / 32 * 16 * groups) {
        float sums[filters / 16][2 * groups][4] = {};
        int right[groups];  // the line whose chunk this lane passes to ldmatrix
#pragma unroll
        for (int g = 0; g < groups; g++) right[g] = band.line(minInt(begin + 16 * g + lane % 8 + lane / 16 * 8, band.pixels() - 1));
#pragma unroll 1
        for (int tap = 0, further = 0; tap < taps; tap++, further += tap == 3 || tap == 6 ? width : 1) {
          int of = backwards ? taps - 1 - tap : tap;
#pragma unroll
          for (int k = 0; k < channels / 16; k++) {
            unsigned a[filters / 16][4];
#pragma unroll
            for (int i = 0; i < filters / 16; i++)
              ldmatrixX4(a[i], memory, Lines::place((16 * i + lane % 16) * taps + of, 2 * k + lane / 16));
#pragma unroll
            for (int g = 0; g < groups; g++) {
              unsigned b[4];
              ldmatrixX4(b, lines, Lines::place(right[g] + further, 2 * k + lane / 8 % 2));
#pragma unroll
              for (int i = 0; i < filters / 16; i++) {
                mmaBF16_16x8x16(sums[i][2 * g], a[i], b);
                mmaBF16_16x8x16(sums[i][2 * g + 1], a[i], b + 2);
              }
            }
          }
        }
        float* to = y + (long long)band.image * filters * height * width + band.first * width;
#pragma unroll
        for (int i = 0; i < filters / 8; i++) {
          int filter = 8 * i + lane / 4;
          float add = epilogue & biasPerRow ? bias[filter] : 0;
#pragma unroll
          for (int j = 0; j < 2 * groups; j++) {
            int pixel = begin + 8 * j + lane % 4 * 2;
            Vector<float, 2> v = {sums[i / 2][j][i % 2 * 2] + add, sums[i / 2][j][i % 2 * 2 + 1] + add};
            if (epilogue & withReLU) v = {v.v[0] <= 0 ? 0 : v.v[0], v.v[1] <= 0 ? 0 : v.v[1]};
            if (pixel < band.pixels()) *(Vector<float, 2>*)(to + filter * height * width + pixel) = v;
          }
        }
      }
    }
  }
};

// FewFilter is the gradient by the filter: row s of partial [slices, filters channels taps] gets the
// sum over the s-th of slices parts of the images. Each warp has one row of taps of 16 filters, and a
// part of the pixels of each band.
template <int channels, int filters>
struct FewFilter {
  using Left = FewChannels<filters>;
  using Right = FewChannels<channels>;
  static constexpr int units = filters / 16 * 3, parts = filters == 16 ? 4 : 1, threads = 32 * units * parts;
  static constexpr int blocks = filters == 16 ? 2 : 3, taps = 9, all = filters * channels * taps;

  static INLINE void run(float* partial, const float* dout, const float* x, int B, int height, int width, int rows, unsigned* memory) {
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32, unit = warp / parts, part = warp % parts;
    int sixteen = unit >= 3, down = unit - 3 * sixteen, bands = (height + rows - 1) / rows, slices = gridDim.y;
    int from = (int)((long long)B * blockIdx.y / slices) * bands, to = (int)((long long)B * (blockIdx.y + 1) / slices) * bands;
    unsigned *lines = memory + (rows * width + 15) / 16 * 16 * Left::words;
    float sums[3][channels / 8][4] = {};
    for (int number = from; number < to; number++) {
      Band band(height, width, rows, number);
      barrier();
      Left::load(memory, dout + (long long)band.image * filters * height * width, height, width, band.first, band.first + band.count, 0);
      for (int n = band.pixels() * Left::words + threadIdx.x; n < (band.pixels() + 15) / 16 * 16 * Left::words; n += threads) memory[n] = 0;
      Right::load(lines, x + (long long)band.image * channels * height * width, height, width, band.first - 1, band.first + band.count + 1, 1);
      barrier();
      for (int begin = 16 * part; begin < band.pixels(); begin += 16 * parts) {
        unsigned a[4];
        ldmatrixX4Trans(a, memory, Left::place(begin + lane % 8 + lane / 16 * 8, 2 * sixteen + lane / 8 % 2));
        int right = band.line(minInt(begin + lane % 16, band.pixels() - 1)) + down * (width + 2);
#pragma unroll
        for (int s = 0; s < 3; s++)
#pragma unroll
          for (int j = 0; j < channels / 16; j++) {
            unsigned b[4];
            ldmatrixX4Trans(b, lines, Right::place(right + s, 2 * j + lane / 16));
            mmaBF16_16x8x16(sums[s][2 * j], a, b);
            mmaBF16_16x8x16(sums[s][2 * j + 1], a, b + 2);
          }
      }
    }
    // The parts' sums are added in order.
    float* total = (float*)memory;
    for (int turn = 0; turn < parts; turn++) {
      barrier();
      if (part != turn) continue;
#pragma unroll
      for (int s = 0; s < 3; s++)
#pragma unroll
        for (int j = 0; j < channels / 8; j++)
#pragma unroll
          for (int i = 0; i < 4; i++) {
            int filter = 16 * sixteen + i / 2 * 8 + lane / 4, channel = 8 * j + lane % 4 * 2 + i % 2, at = (filter * channels + channel) * taps + 3 * down + s;
            total[at] = turn == 0 ? sums[s][j][i] : total[at] + sums[s][j][i];
          }
    }
    barrier();
    for (int i = threadIdx.x; i < all; i += threads) partial[(long long)blockIdx.y * all + i] = total[i];
  }
};

}  // namespace pollen
