// Convolutions of images of few channels on the tensor cores, with all that follows to the maxima of windows in registers.
//
//     y(k, pixel) = sum over taps of w(k, tap) x(pixel and tap)
//
// Depth are the taps, of which there are 32 at most. The filters stay in registers; the images lie in shared memory (windowproduct.cuh), where a word of a
// fragment of b is one word: of tf32 a tap, of bf16 two neighbours of a line of the filter, the last of which may be alone. A product has eight columns, a
// line each of four windows: with those of the windows' other lines a lane has whole windows. Of a product's 16 rows a lane has the filters 2 group and one
// more, which are a word of a packed copy in bf16.
#pragma once

#include "nhwc.cuh"
#include "windowproduct.cuh"

namespace pollen {

// TapWords are the words of a filter [C R S], and of those that a tap of the image meets the bits that count.
template <class Number>
struct TapWords;

template <>
struct TapWords<BF16> {
  static constexpr int steps = 2, perWord = 2;
  static INLINE unsigned filter(float tap, float next) { return packBF16(tap, next); }
};

template <>
struct TapWords<TF32> {
  static constexpr int steps = 4, perWord = 1;
  static INLINE unsigned filter(float tap, float) { return WindowWords<TF32>::rounded(tap); }
};

// Copy is the packed copy of the maxima, if there is one (nhwc.cuh): lines rows x columns of each image, with a border, count of them in a block of channels.
// They are whole, or lie in chunks (nhwcgroup.cuh).
struct Copy {
  bool there;
  unsigned* lines;
  int rows, columns, top, left, count;
  bool chunks;

  // at is word word of a line of a block of channels.
  INLINE unsigned* at(int block, int number, int word) const {
    return lines + block * count * line + (chunks ? (word / 4 * count + number) * 4 + word % 4 : number * line + word);
  }
};

// ForwardOfWindows are a block's filters, 32 of them, and the images from blockIdx.y each on, of which so many lie in shared memory together. Each warp has
// every eighth group of 16 windows, its lanes four neighbours of four filters. Without pooling all of the windows is written.
template <class Number, bool pools>
struct ForwardOfWindows {
  using Words = WindowWords<Number>;
  using Taps = TapWords<Number>;
  static constexpr int side = 32, warps = 8, group = 16, steps = Taps::steps;

  Convolution c;
  const float *x, *w, *bias;
  float* y;
  Pooled<float> pooled;
  Copy copy;
  int epilogue, each, together, width, plane;

  INLINE int windows() const { return c.P / 2 * (c.Q / 2); }

  // Floor is what the epilogue asks of maxima: the least, whether the place of any is noted, and what is noted of those that are not above 0 otherwise.
  struct Floor {
    float least;
    bool any;
    unsigned nothing;
  };

  INLINE Floor floor() const {
    return {epilogue & withReLU ? 0.0f : -__builtin_huge_valf(), !(epilogue & (withReLU | onlyPositive)), epilogue & onlyPositive ? (unsigned)noMaximum : 0u};
  }

  // maximum is a window's, and what is noted of it: what Pooled finds. A NaN is the maximum, and what counts, the elements before it.
  INLINE float maximum(const float (&window)[4], const Floor& floor, unsigned& which) const {
    bool right[2] = {window[1] > window[0], window[3] > window[2]};
    float top = maximumOrNaN(window[0], window[1]), low = right[1] ? window[3] : window[2];
    bool below = low > top;
    float found = below ? low : right[0] ? window[1] : window[0], best = maximumOrNaN(maximumOrNaN(top, window[2]), window[3]);
    unsigned at = below ? 2 + right[1] : right[0];
    which = ((found > 0) | floor.any) ? at : floor.nothing;
    return maximumOrNaN(best, floor.least);
  }

  // Lane are a thread's constants: its filters' words and biases, and the offsets of its taps, with the bits that count.
  struct Lane {
    unsigned filters[2][steps][4], bits[steps][2];
    int offset[steps][2];
    float bias[2][2];
  };

  INLINE void load(Lane& lane, int filter) const {
    int across = (c.S + Taps::perWord - 1) / Taps::perWord, count = c.C * c.R * across;
#pragma unroll
    for (int s = 0; s < steps; s++)
#pragma unroll
      for (int i = 0; i < 2; i++) {
        int at = 8 * s + 4 * i + threadIdx.x % 4, word = lesser(at, count - 1), line = word / across, tap = word % across * Taps::perWord;
        bool there = at < count, both = there & (tap + 1 < c.S);
        lane.offset[s][i] = line / c.R * plane + line % c.R * c.dilationH * width + tap * c.dilationW;
        lane.bits[s][i] = Taps::perWord == 1 || both ? ~0u : there ? 0xffffu : 0;
#pragma unroll
        for (int m = 0; m < 4; m++) {
          int k = filter + 16 * (m / 2) + m % 2, from = (k * c.C * c.R + line) * c.S + tap;
          bool is = k < c.K;
          lane.filters[m / 2][s][2 * i + m % 2] = Taps::filter(loadIf(is & there, w + from), loadIf(is & both, w + from + 1));
        }
      }
#pragma unroll
    for (int m = 0; m < 4; m++) {
      int k = filter + 16 * (m / 2) + m % 2;
      lane.bias[m / 2][m % 2] = loadIf(k < c.K && epilogue & biasPerRow, bias + k);
    }
  }

  // multiply makes the sums of a window for each of a lane's filters, whose words lie at near.
  INLINE void multiply(float (&window)[4][4], const Lane& lane, const unsigned* near) const {
    int down = unknown(c.strideH * width);
#pragma unroll
    for (int half = 0; half < 2; half++) {
      float sum[2][4];
#pragma unroll
      for (int m = 0; m < 2; m++)
#pragma unroll
        for (int k = 0; k < 4; k++) sum[m][k] = lane.bias[m][k / 2];
#pragma unroll
      for (int s = 0; s < steps; s++) {
        unsigned b[2];
#pragma unroll
        for (int i = 0; i < 2; i++) {
          b[i] = near[lane.offset[s][i] + half * down];
          if (Taps::perWord > 1) b[i] &= lane.bits[s][i];
        }
#pragma unroll
        for (int m = 0; m < 2; m++) Number::multiply(sum[m], lane.filters[m][s], b);
      }
#pragma unroll
      for (int m = 0; m < 4; m++) window[m][2 * half] = sum[m / 2][m % 2 * 2], window[m][2 * half + 1] = sum[m / 2][m % 2 * 2 + 1];
    }
  }

  // storePixels writes a window of each filter, all of it.
  INLINE void storePixels(const float (&sums)[4][4], int image, int filter, int window) const {
    int p = window / (c.Q / 2) * 2, q = window % (c.Q / 2) * 2;
#pragma unroll
    for (int m = 0; m < 4; m++) {
      int k = filter + 16 * (m / 2) + m % 2;
#pragma unroll
      for (int half = 0; half < 2; half++) {
        float v[2];
#pragma unroll
        for (int i = 0; i < 2; i++) v[i] = finish<float>(sums[m][2 * half + i], epilogue & withReLU, nullptr, 0);
        if (k < c.K) *(Vector<float, 2>*)(y + ((image * c.K + k) * c.P + p + half) * c.Q + q) = {v[0], v[1]};
      }
    }
  }

  // border writes the zeros of the block's words around count images.
  INLINE void border(int image, int count) const {
    constexpr int chunks = side / Taps::perWord / 4, words = chunks * 4;
    int height = c.P / 2, across = c.Q / 2, sides = copy.columns - across, block = blockIdx.x / Taps::perWord;
    for (int i = threadIdx.x / 32; i < count * copy.rows; i += warps) {
      int row = i % copy.rows - copy.top;
      bool whole = (unsigned)row >= (unsigned)height;
      for (int j = threadIdx.x % 32; j < (whole ? copy.columns : sides) * chunks; j += 32) {
        int column = j / chunks;
        if (!whole && column >= copy.left) column += across;
        int number = (image * copy.rows + i) * copy.columns + column;
        *(Vector<unsigned, 4>*)copy.at(block, number, blockIdx.x % Taps::perWord * words + j % chunks * 4) = {0, 0, 0, 0};
      }
    }
  }

  // store writes the maxima of four windows of each filter, their notes and their words of the copy.
  INLINE void store(const float (&best)[4][4], const unsigned (&which)[4], int image, int filter, int window, const int* places) const {
#pragma unroll
    for (int m = 0; m < 4; m++) {
      int k = filter + 16 * (m / 2) + m % 2, at = (image * c.K + k) * windows() + window;
      if (k >= c.K) continue;
      *(Vector<float, 4>*)(pooled.data.at() + at) = {best[m][0], best[m][1], best[m][2], best[m][3]};
      if (epilogue & withWhich) *(unsigned*)(pooled.which.at() + at) = which[m];
    }
    if (!copy.there) return;
#pragma unroll
    for (int j = 0; j < 4; j++) {
      int place = places[window + j];
#pragma unroll
      for (int m = 0; m < 2; m++) {
        int word = blockIdx.x % Taps::perWord * (side / Taps::perWord) + (16 * m + threadIdx.x % 32 / 4 * 2) / Taps::perWord;
        unsigned* to = copy.at(blockIdx.x / Taps::perWord, image * copy.rows * copy.columns + place, word);
        if constexpr (Taps::perWord == 2)
          *to = Taps::filter(best[2 * m][j], best[2 * m + 1][j]);
        else
          *(Vector<unsigned, 2>*)to = {Taps::filter(best[2 * m][j], 0), Taps::filter(best[2 * m + 1][j], 0)};
      }
    }
  }

  INLINE void operator()(unsigned* memory) const {
    int groups = (windows() + group - 1) / group, last = lesser((blockIdx.y + 1) * each, c.B), lane = threadIdx.x % 32;
    int filter = blockIdx.x * side + lane / 4 * 2, *places = (int*)memory, *lines = places + groups * group;
    unsigned* words = memory + 2 * groups * group;
    placesOf(c, places, groups * group, width);
    for (int i = threadIdx.x; i < groups * group; i += blockDim.x) lines[i] = (i / (c.Q / 2) + copy.top) * copy.columns + i % (c.Q / 2) + copy.left;
    Lane own;
    load(own, filter);
    const Floor least = floor();
    for (int begin = blockIdx.y * each; begin < last; begin += together) {
      int count = lesser(together, last - begin), total = count * groups;
      barrier();
      fillImages<Words, warps>(c, x, words, begin, count, width, plane, c.dilationW);
      if (copy.there) border(begin, count);
      barrier();
      for (int i = threadIdx.x / 32; i < total; i += warps) {
        int image = i / groups, window = i % groups * group;
        auto at = *(const Vector<int, 4>*)(places + window + lane / 8 * 4);
        const unsigned* near = words + image * c.C * plane + lane / 4 % 2 * c.strideW;
        window += lane % 4 * 4, image += begin;
        bool there = window < windows();
        float best[4][4];
        unsigned which[4] = {0, 0, 0, 0};
#pragma unroll
        for (int j = 0; j < 4; j++) {
          float sums[4][4];
          multiply(sums, own, near + unknown(at.v[j]));
          if (pools) {
#pragma unroll
            for (int m = 0; m < 4; m++) {
              unsigned at;
              best[m][j] = maximum(sums[m], least, at);
              which[m] += at << 8 * j;
            }
          } else if (there) {
            storePixels(sums, image, filter, window + j);
          }
        }
        if (pools && there) store(best, which, image, filter, window, lines);
      }
    }
  }
};

}  // namespace pollen
