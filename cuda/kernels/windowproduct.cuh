// The gradient of a filter with few taps from pooling windows' gradients, on the tensor cores. The
// depth are the windows' elements, of which one in four is not 0.
//
//     dw(k, tap) = sum over windows and their four elements of dout(k, element) x(element and tap)
//
// The unpooled gradient is never stored: a lane makes its fragment of a from a window's gradient
// and argmax, and no other lane has a part of that window. With group = lane / 4 and pair = lane %
// 4, a lane provides filters group and group + 8 of a, and tap group of b, both for window pair of
// four: in bf16 two words, one per row of the window; in tf32 four words, for two mma.
#pragma once

#include "tensorcore.cuh"
#include "windows.cuh"
#include "im2col.cuh"

namespace pollen {

// WindowWords packs a window into count words, and a pixel of an image with its right neighbour
// next.
template <class Number>
struct WindowWords;

template <>
struct WindowWords<BF16> {
  static constexpr int count = 2;
  static INLINE unsigned pixel(float x, float next) { return packBF16(x, next); }
  static INLINE int at(int i, int down, int) { return i * down; }
  static INLINE void unpool(unsigned (&words)[2], float g, int argmax) {
    unsigned there = packBF16(g, 0) << argmax % 2 * 16;
    words[0] = argmax < 2 ? there : 0;
    words[1] = argmax / 2 == 1 ? there : 0;
  }
};

template <>
struct WindowWords<TF32> {
  static constexpr int count = 4;
  static INLINE unsigned rounded(float x) {
    Vector<float, 4> v = {x};
    return TF32::word(&v, 0, 0);
  }
  static INLINE unsigned pixel(float x, float) { return rounded(x); }
  static INLINE int at(int i, int down, int right) { return i / 2 * down + i % 2 * right; }
  static INLINE void unpool(unsigned (&words)[4], float g, int argmax) {
    unsigned there = rounded(g);
#pragma unroll
    for (int i = 0; i < 4; i++) words[i] = argmax == i ? there : 0;
  }
};

// fillImages fills shared memory with the words of count images, including the padding that taps
// meet. Rows are width words apart, channels plane. A pixel's neighbour is right columns further
// on. A warp has several rows' loads in flight.
template <class Words, int warps>
INLINE void fillImages(const Convolution& c, const float* x, unsigned* words, int image, int count, int width, int plane, int right) {
  constexpr int together = 4;
  int height = (c.P - 1) * c.strideH + (c.R - 1) * c.dilationH + 1, across = (c.Q - 1) * c.strideW + (c.S - 1) * c.dilationW + 1;
  int channels = count * c.C, warp = threadIdx.x / 32, down = warps / height, further = warps % height;
  for (int j = threadIdx.x % 32; j < across; j += 32) {
    int at = j - c.padW, next = at + right, channel = warp / height, row = warp % height;
    bool here = (unsigned)at < (unsigned)c.W, there = Words::count == 2 & (unsigned)next < (unsigned)c.W;
    while (channel < channels) {
      float v[together], other[together];
      int to[together];
#pragma unroll
      for (int i = 0; i < together; i++) {
        to[i] = channel < channels ? channel * plane + row * width + j : -1;
        bool inside = to[i] >= 0 & (unsigned)(row - c.padH) < (unsigned)c.H;
        const float* from = x + ((image * c.C + channel) * c.H + row - c.padH) * c.W + at;
        v[i] = loadIf(inside & here, from);
        other[i] = Words::count == 2 ? loadIf(inside & there, from + right) : 0;
        row += further, channel += down;
        if (row >= height) row -= height, channel++;
      }
#pragma unroll
      for (int i = 0; i < together; i++)
        if (to[i] >= 0) words[to[i]] = Words::pixel(v[i], other[i]);
    }
  }
}

// windowOffsets computes the offsets of count windows in an image; windows after the last one get
// its offset.
INLINE void windowOffsets(const Convolution& c, int* places, int count, int width) {
  int across = c.Q / 2, last = c.P / 2 * across - 1;
  for (int i = threadIdx.x; i < count; i += blockDim.x) {
    int window = minInt(i, last);
    places[i] = 2 * (window / across * c.strideH * width + window % across * c.strideW);
  }
}

// ProductOfWindows computes 32 filters by 32 taps of [C R S] for the images from blockIdx.y each
// on, of which together lie in shared memory at a time. Each warp has every eighth group of 16
// windows, each lane four neighbouring windows of four filters. The next group is loaded meanwhile.
template <class Number>
struct ProductOfWindows {
  using Words = WindowWords<Number>;
  static constexpr int side = 32, warps = 8, group = 16;

  Convolution c;
  Windows<float> from;
  const float* x;
  int each, together, width, plane;

  // Part is a lane's windows of a group.
  struct Part {
    Vector<float, 4> g[4];
    Vector<unsigned char, 4> argmax[4];
  };

  INLINE int windows() const { return c.P / 2 * (c.Q / 2); }

  // load loads the windows from window on, for four filters that are eight apart.
  INLINE void load(Part& part, int image, int filter, int window) const {
    int all = windows(), begin = (image * c.K + filter) * all + window;
#pragma unroll
    for (int i = 0; i < 4; i++) {
      bool there = (filter + 8 * i < c.K) & (window < all);
      int place = there ? begin + 8 * i * all : 0;
      loadIf4(there, from.dout + place, part.g[i].v);
      part.argmax[i] = *(const Vector<unsigned char, 4>*)(from.argmax + place);
    }
  }

  // add accumulates the block's images into the warp's sums, for filters from filter on and the
  // taps at offset, and the windows' gradients into whole, by filter.
  INLINE void add(float (&sum)[2][4][4], float (&whole)[4], int filter, const int (&offset)[4], const int* places, unsigned* words) const {
    int groups = (windows() + group - 1) / group, last = minInt((blockIdx.y + 1) * each, c.B), quarter = threadIdx.x % 4 * 4;
    for (int begin = blockIdx.y * each; begin < last; begin += together) {
      int count = minInt(together, last - begin), total = count * groups, i = threadIdx.x / 32, image = i / groups, window = i % groups * group + quarter;
      barrier();
      // Software pipelining: the next group's windows are loaded before this one's products.
      Part next;
      if (i < total) load(next, begin + image, filter, window);
      fillImages<Words, warps>(c, x, words, begin, count, width, plane, c.strideW);
      barrier();
      while (i < total) {
        Part now = next;
        const unsigned* own = words + image * c.C * plane;
        auto at = *(const Vector<int, 4>*)(places + window);
        i += warps, image = i / groups, window = i % groups * group + quarter;
        if (i < total) load(next, begin + image, filter, window);
        int down = opaque(c.strideH * width), right = opaque(c.strideW);
#pragma unroll
        for (int j = 0; j < 4; j++) {
          const unsigned* near = own + opaque(at.v[j]);
          unsigned b[4][Words::count];
#pragma unroll
          for (int t = 0; t < 4; t++)
#pragma unroll
            for (int k = 0; k < Words::count; k++) b[t][k] = near[offset[t] + Words::at(k, down, right)];
#pragma unroll
          for (int h = 0; h < 2; h++) {
            unsigned a[2][Words::count];
#pragma unroll
            for (int k = 0; k < 2; k++) {
              float g = now.g[2 * h + k].v[j];
              Words::unpool(a[k], g, now.argmax[2 * h + k].v[j]);
              if (now.argmax[2 * h + k].v[j] != noMaximum) whole[2 * h + k] += g;
            }
#pragma unroll
            for (int s = 0; s < Words::count; s += 2) {
              const unsigned four[4] = {a[0][s], a[1][s], a[0][s + 1], a[1][s + 1]};
#pragma unroll
              for (int t = 0; t < 4; t++) Number::multiply(sum[h][t], four, b[t] + s);
            }
          }
        }
      }
    }
  }

  // Stores the slice's partial sums and, if summed is set, the sums of its windows by filter,
  // [slices K].
  INLINE void operator()(Out<float> partial, Out<float> sums, bool summed, unsigned* memory) const {
    int all = c.C * c.taps(), places = (windows() + group - 1) / group * group, rows = (c.K + side - 1) / side;
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32, filter = blockIdx.x % rows * side, first = blockIdx.x / rows * side;
    float sum[2][4][4], whole[4] = {0, 0, 0, 0};
    int offset[4];
#pragma unroll
    for (int t = 0; t < 4; t++) {
      int tap = minInt(first + 8 * t + lane / 4, all - 1), inner = tap % c.taps();
      offset[t] = tap / c.taps() * plane + inner / c.S * c.dilationH * width + inner % c.S * c.dilationW;
#pragma unroll
      for (int k = 0; k < 4; k++) sum[0][t][k] = sum[1][t][k] = 0;
    }
    windowOffsets(c, (int*)memory, places, width);
    add(sum, whole, filter + lane / 4, offset, (const int*)memory, memory + places);
    barrier();
    // The warps' sums lie one after the other, in rows of taps; the XOR puts neighbouring rows into
    // different banks.
    float* tiles = (float*)memory;
#pragma unroll
    for (int i = 0; i < 4; i++)
#pragma unroll
      for (int t = 0; t < 4; t++) {
        int row = 8 * i + lane / 4, column = (8 * t + lane % 4 * 2) ^ row % 4 * 8;
        *(Vector<float, 2>*)(tiles + (warp * side + row) * side + column) = {sum[i / 2][t][i % 2 * 2], sum[i / 2][t][i % 2 * 2 + 1]};
      }
    barrier();
    for (int row = warp; row < minInt(side, c.K - filter); row += warps) {
      const float* at = tiles + row * side + (lane ^ row % 4 * 8);
      float total = at[0];
#pragma unroll
      for (int w = 1; w < warps; w++) total += at[w * side * side];
      if (first + lane < all) partial.at()[(blockIdx.y * c.K + filter + row) * all + first + lane] = total;
    }
    if (!summed || first > 0) return;
    barrier();
#pragma unroll
    for (int i = 0; i < 4; i++) {
      whole[i] += shuffleXor(whole[i], 1);
      whole[i] += shuffleXor(whole[i], 2);
      if (lane % 4 == 0) tiles[warp * side + 8 * i + lane / 4] = whole[i];
    }
    barrier();
    if (warp > 0 || filter + lane >= c.K) return;
    float total = tiles[lane];
#pragma unroll
    for (int w = 1; w < warps; w++) total += tiles[w * side + lane];
    sums.at()[blockIdx.y * c.K + filter + lane] = total;
  }
};

}  // namespace pollen
