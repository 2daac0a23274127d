// Convolutions of images of few channels on the tensor cores, with all that follows to the maxima of windows in registers.
//
//     y(k, pixel) = sum over taps of w(k, tap) x(pixel and tap)
//
// Depth are the taps, of which there are 32 at most. The filters stay in registers; the images lie in shared memory (windowproduct.cuh), where a word of a
// fragment of b is one word: of tf32 a tap, of bf16 two neighbours of a line of the filter, the last of which may be alone. A product has eight columns, a
// line each of four windows: with those of the windows' other lines a lane has whole windows. Of two products' 32 rows a lane has the filters from 4 group
// on, which are 16 bytes of a packed copy in tf32, and half of that in bf16.
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
    return lines + block * count * lineWords + (chunks ? (word / 4 * count + number) * 4 + word % 4 : number * lineWords + word);
  }
};

// ForwardOfWindows are a block's filters, 32 of them, and the images from blockIdx.y each on, of which so many lie in shared memory together. Each warp has
// every eighth group of 16 windows, its lanes four neighbours of four filters. Without pooling all of the windows is written; only packed, the maxima are in
// the copy only.
enum Written { allPixels, theMaxima, onlyPacked };
template <class Number, Written written>
struct ForwardOfWindows {
  using Words = WindowWords<Number>;
  using Taps = TapWords<Number>;
  static constexpr int side = 32, warps = 8, group = 16, steps = Taps::steps;
  static constexpr bool pools = written != allPixels;

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
  INLINE float maximum(const float (&window)[4], const Floor& floor, unsigned& argmax) const {
    bool right[2] = {window[1] > window[0], window[3] > window[2]};
    float top = maxNaN(window[0], window[1]), low = right[1] ? window[3] : window[2];
    bool below = low > top;
    float found = below ? low : right[0] ? window[1] : window[0], best = maxNaN(maxNaN(top, window[2]), window[3]);
    unsigned at = below ? 2 + right[1] : right[0];
    argmax = ((found > 0) | floor.any) ? at : floor.nothing;
    return maxNaN(best, floor.least);
  }

  // Lane are a thread's constants: its filters' words and biases, and the offsets of its taps, with the bits that count.
  struct Lane {
    unsigned filters[2][steps][4], bits[steps][2];
    int offset[steps][2];
    float bias[2][2];
  };

  // Filters are the block's on their way to shared memory, a thread's taps of them: a filter has 32 at most.
  struct Filters {
    float taps[side / warps];
  };

  INLINE Filters filters() const {
    Filters f;
    int each = c.C * c.taps(), from = blockIdx.x * side * each, left = minInt(side * each, c.K * each - from);
#pragma unroll
    for (int j = 0; j < side / warps; j++) {
      int i = threadIdx.x + 32 * warps * j;
      f.taps[j] = loadIf(i < left, w + from + i);
    }
    return f;
  }

  INLINE void store(const Filters& f, float* taps) const {
#pragma unroll
    for (int j = 0; j < side / warps; j++) {
      int i = threadIdx.x + 32 * warps * j;
      if (i < side * c.C * c.taps()) taps[i] = f.taps[j];
    }
  }

  INLINE void loadBias(Lane& lane, int filter) const {
#pragma unroll
    for (int m = 0; m < 4; m++) {
      int k = blockIdx.x * side + filter + m;
      lane.bias[m / 2][m % 2] = loadIf(k < c.K && epilogue & biasPerRow, bias + k);
    }
  }

  // load finds the other constants of a lane whose first filter is number filter of the block's.
  INLINE void load(Lane& lane, const float* taps, int filter) const {
    int across = (c.S + Taps::perWord - 1) / Taps::perWord, count = c.C * c.R * across;
#pragma unroll
    for (int s = 0; s < steps; s++)
#pragma unroll
      for (int i = 0; i < 2; i++) {
        int at = 8 * s + 4 * i + threadIdx.x % 4, word = minInt(at, count - 1), filterRow = word / across, tap = word % across * Taps::perWord;
        bool there = at < count, both = there & (tap + 1 < c.S);
        lane.offset[s][i] = filterRow / c.R * plane + filterRow % c.R * c.dilationH * width + tap * c.dilationW;
        lane.bits[s][i] = Taps::perWord == 1 || both ? ~0u : there ? 0xffffu : 0;
#pragma unroll
        for (int m = 0; m < 4; m++) {
          const float* from = taps + ((filter + m) * c.C * c.R + filterRow) * c.S + tap;
          lane.filters[m / 2][s][2 * i + m % 2] = Taps::filter(there ? from[0] : 0, both ? from[1] : 0);
        }
      }
  }

  // multiply makes the sums of a window for each of a lane's filters, whose words lie at near.
  INLINE void multiply(float (&window)[4][4], const Lane& lane, const unsigned* near) const {
    int down = opaque(c.strideH * width);
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
      int k = filter + m;
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
    const unsigned zero = opaque(0);  // or clang would write the 16 bytes by halves
    int height = c.P / 2, across = c.Q / 2, sides = copy.columns - across, block = blockIdx.x / Taps::perWord;
    for (int i = threadIdx.x / 32; i < count * copy.rows; i += warps) {
      int row = i % copy.rows - copy.top;
      bool whole = (unsigned)row >= (unsigned)height;
      for (int j = threadIdx.x % 32; j < (whole ? copy.columns : sides) * chunks; j += 32) {
        int column = j / chunks;
        if (!whole && column >= copy.left) column += across;
        int number = (image * copy.rows + i) * copy.columns + column;
        *(Vector<unsigned, 4>*)copy.at(block, number, blockIdx.x % Taps::perWord * words + j % chunks * 4) = {zero, zero, zero, zero};
      }
    }
  }

  // store writes the maxima of four windows of each filter.
  INLINE void store(const float (&best)[4][4], int image, int filter, int window) const {
#pragma unroll
    for (int m = 0; m < 4; m++) {
      int k = filter + m, at = (image * c.K + k) * windows() + window;
      if (k < c.K) *(Vector<float, 4>*)(pooled.data.at() + at) = {best[m][0], best[m][1], best[m][2], best[m][3]};
    }
  }

  // storeCopy writes the words of the copy that are those of some windows' maxima, two of bf16 or one of tf32, 16 bytes at a time. All lanes take part. In
  // bf16 such bytes are of two lanes, each of which writes one of the two windows: so they write neighbouring lines at once.
  template <int count>
  INLINE void storeCopy(const float (&best)[4][4], int begin, int image, bool there, const int* places) const {
    using Chunk = Vector<unsigned, 4>;
    unsigned lane = (unsigned)opaque(threadIdx.x) % 32, odd = count == 2 ? lane / 4 % 2 : 0;
    int word = blockIdx.x % count * (side / count) + lane / (4 * count) * 4;
    Chunk chunk;
    if constexpr (count == 2) {
      unsigned mine[2], other[2];
#pragma unroll
      for (int m = 0; m < 2; m++) {
        unsigned left = Taps::filter(best[2 * m][begin], best[2 * m + 1][begin]), right = Taps::filter(best[2 * m][begin + 1], best[2 * m + 1][begin + 1]);
        mine[m] = odd ? right : left;
        other[m] = shuffleXor((int)(odd ? left : right), 4);
      }
      chunk = {odd ? other[0] : mine[0], odd ? other[1] : mine[1], odd ? mine[0] : other[0], odd ? mine[1] : other[1]};
    } else {
      chunk = {Taps::filter(best[0][begin], 0), Taps::filter(best[1][begin], 0), Taps::filter(best[2][begin], 0), Taps::filter(best[3][begin], 0)};
    }
    if (there) *(Chunk*)copy.at(blockIdx.x / count, image * copy.rows * copy.columns + places[begin + odd], word) = chunk;
  }

  // storeNotes writes those of count images, which lie in shared memory, as many bytes at once as are aligned.
  INLINE void storeNotes(const unsigned char* notes, int image, int count) const {
    int filter = blockIdx.x * side, size = minInt(side, c.K - filter) * windows();
    for (int i = 0; i < count; i++, notes += side * windows()) {
      unsigned char* to = pooled.argmax.at() + ((image + i) * c.K + filter) * windows();
      if (c.K % 4 == 0) {
        using Chunk = Vector<unsigned, 4>;
        for (int j = threadIdx.x; j < size / 16; j += 32 * warps) {
          const unsigned* v = ((const Chunk*)notes)[j].v;
          ((Chunk*)to)[j] = {v[0], v[1], v[2], v[3]};
        }
      } else {
        for (int j = threadIdx.x; j < size / 4; j += 32 * warps) ((unsigned*)to)[j] = ((const unsigned*)notes)[j];
      }
    }
  }

  // Shared memory has the windows' places in an image and in the copy, the filters, the notes of the images that lie there together, and these.
  INLINE void operator()(unsigned* memory) const {
    int groups = (windows() + group - 1) / group, first = blockIdx.y * each, last = minInt(first + each, c.B), lane = threadIdx.x % 32;
    int filter = lane / 4 * 4, *places = (int*)memory, *lines = places + groups * group;
    float* taps = (float*)(lines + groups * group);
    unsigned char* notes = (unsigned char*)(taps + side * c.C * c.taps());
    unsigned* words = (unsigned*)(notes + together * side * windows());
    Lane own;
    loadBias(own, filter);
    const Filters brought = filters();
    fillImages<Words, warps>(c, x, words, first, minInt(together, last - first), width, plane, c.dilationW);
    windowOffsets(c, places, groups * group, width);
    for (int i = threadIdx.x; i < groups * group; i += blockDim.x) lines[i] = (i / (c.Q / 2) + copy.top) * copy.columns + i % (c.Q / 2) + copy.left;
    store(brought, taps);
    barrier();
    load(own, taps, filter);
    const Floor least = floor();
    for (int begin = first; begin < last; begin += together) {
      int count = minInt(together, last - begin);
      if (begin > first) {
        fillImages<Words, warps>(c, x, words, begin, count, width, plane, c.dilationW);
        barrier();
      }
      if (written == onlyPacked || copy.there) border(begin, count);
      int image = threadIdx.x / 32 / groups, number = threadIdx.x / 32 % groups, down = warps / groups, further = warps % groups;
      while (image < count) {
        int window = number * group;
        auto at = *(const Vector<int, 4>*)(places + window + lane / 8 * 4);
        const unsigned* near = words + image * c.C * plane + lane / 4 % 2 * c.strideW;
        window += lane % 4 * 4;
        bool there = window < windows();
        float best[4][4];
        unsigned argmax[4] = {0, 0, 0, 0};
#pragma unroll
        for (int j = 0; j < 4; j++) {
          float sums[4][4];
          multiply(sums, own, near + opaque(at.v[j]));
          if (pools) {
#pragma unroll
            for (int m = 0; m < 4; m++) {
              unsigned at;
              best[m][j] = maximum(sums[m], least, at);
              argmax[m] += at << 8 * j;
            }
            constexpr int some = Taps::perWord;
            if (j % some == some - 1 && (written == onlyPacked || copy.there)) storeCopy<some>(best, j + 1 - some, begin + image, there, lines + window);
          } else if (there) {
            storePixels(sums, begin + image, blockIdx.x * side + filter, window + j);
          }
        }
        if (pools && there) {
          if (written == theMaxima) store(best, begin + image, blockIdx.x * side + filter, window);
#pragma unroll
          for (int m = 0; m < 4; m++) *(unsigned*)(notes + (image * side + filter + m) * windows() + window) = argmax[m];
        }
        number += further, image += down;
        if (number >= groups) number -= groups, image++;
      }
      barrier();
      if (pools && epilogue & withArgmax) storeNotes(notes, begin, count);
    }
  }
};

}  // namespace pollen
