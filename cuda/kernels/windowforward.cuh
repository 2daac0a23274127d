// Convolutions of images with few channels on the tensor cores, with everything up to the pooled
// maxima in registers.
//
//     y(k, pixel) = sum over taps of w(k, tap) x(pixel and tap)
//
// The depth are the taps, at most 32. Fragments of the filters (operand a) stay in registers; the
// images lie in shared memory (windowproduct.cuh), where one word of a fragment of b is one word: a
// tap in tf32, in bf16 two neighbouring taps of a filter's row, of which the last may be single.
//
// An mma has eight columns, here the two elements of one row of four windows; with a second mma for
// the windows' other rows, a lane holds whole windows. Of the 32 rows of two mma, a lane has four
// consecutive filters from 4 group on: these are 16 bytes of a packed copy in tf32, half of that in
// bf16.
#pragma once

#include "nhwc.cuh"
#include "windowproduct.cuh"

namespace pollen {

// TapWords packs taps of a filter [C R S] into words. In the image's words, only the bits that
// belong to existing taps count.
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

// Copy is the packed copy of the maxima, if there is one (nhwc.cuh): rows x columns lines per image
// including a border, count lines per block of channels, whole or in chunks (nhwcgroup.cuh).
struct Copy {
  bool there;
  unsigned* lines;
  int rows, columns, top, left, count;
  bool chunks;

  // at returns the address of word word of line number in a block of channels.
  INLINE unsigned* at(int block, int number, int word) const {
    return lines + block * count * lineWords + (chunks ? (word / 4 * count + number) * 4 + word % 4 : number * lineWords + word);
  }
};

// ForwardOfWindows computes 32 filters on the images from blockIdx.y each on, of which together lie
// in shared memory at a time. Each warp has every eighth group of 16 windows, each lane four
// neighbouring windows of four filters. written selects the result: all pixels of the windows,
// their maxima, or the packed copy of the maxima only.
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

  // Floor is what the epilogue requires of maxima: the least value (0 with ReLU), whether the
  // argmax of any maximum counts, and the argmax of one that does not.
  struct Floor {
    float least;
    bool any;
    unsigned nothing;
  };

  INLINE Floor floor() const {
    return {epilogue & withReLU ? 0.0f : -__builtin_huge_valf(), !(epilogue & (withReLU | onlyPositive)), epilogue & onlyPositive ? (unsigned)noMaximum : 0u};
  }

  // maximum returns a window's maximum and argmax, as Pooled does. If an element is NaN, so is the
  // maximum; the argmax is that of the elements before it.
  INLINE float maximum(const float (&window)[4], const Floor& floor, unsigned& argmax) const {
    // A comparison with NaN is false, so NaN loses here; maxNaN brings it back into best.
    bool right[2] = {window[1] > window[0], window[3] > window[2]};
    float top = maxNaN(window[0], window[1]), low = right[1] ? window[3] : window[2];
    bool below = low > top;
    float found = below ? low : right[0] ? window[1] : window[0], best = maxNaN(maxNaN(top, window[2]), window[3]);
    unsigned at = below ? 2 + right[1] : right[0];
    argmax = ((found > 0) | floor.any) ? at : floor.nothing;
    return maxNaN(best, floor.least);
  }

  // Lane is a thread's constants: its filters' words and biases, the offsets of its taps, and the
  // bits of them that count.
  struct Lane {
    unsigned filters[2][steps][4], bits[steps][2];
    int offset[steps][2];
    float bias[2][2];
  };

  // Filters holds a thread's part of the block's filters on their way to shared memory; a filter
  // has at most 32 taps.
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

  // A lane's other constants are the same in all warps. The block computes them once, in a table
  // [entries, 32 lanes]: for each word of a fragment its offset, the bits that count, and the words of
  // four filters.
  static constexpr int fragmentWords = 2 * steps, wordEntries = 6;

  // prepare computes the table. Each warp has some of the filters' words, or all, for one word of a
  // fragment.
  INLINE void prepare(unsigned* table, const float* taps) const {
    constexpr int sharing = warps / fragmentWords, some = 4 / sharing;  // warps for each word of a fragment; filters of a warp
    int across = (c.S + Taps::perWord - 1) / Taps::perWord, count = c.C * c.R * across, warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    int number = warp / sharing, m = warp % sharing * some;
    int at = 4 * number + lane % 4, word = minInt(at, count - 1), filterRow = word / across, tap = word % across * Taps::perWord;
    bool there = at < count, both = there & (tap + 1 < c.S);
    unsigned* entries = table + number * wordEntries * 32 + lane;
    if (m == 0) {
      entries[0] = filterRow / c.R * plane + filterRow % c.R * c.dilationH * width + tap * c.dilationW;
      entries[32] = Taps::perWord == 1 || both ? ~0u : there ? 0xffffu : 0;
    }
    const float* from = taps + ((lane / 4 * 4 + m) * c.C * c.R + filterRow) * c.S + tap;
#pragma unroll
    for (int i = 0; i < some; i++, from += c.C * c.taps())
      entries[(2 + m + i) * 32] = Taps::filter(there ? from[0] : 0, both ? from[1] : 0);
  }

  INLINE void load(Lane& lane, const unsigned* table) const {
    table += threadIdx.x % 32;
#pragma unroll
    for (int s = 0; s < steps; s++)
#pragma unroll
      for (int i = 0; i < 2; i++, table += wordEntries * 32) {
        lane.offset[s][i] = table[0];
        lane.bits[s][i] = table[32];
#pragma unroll
        for (int m = 0; m < 4; m++) lane.filters[m / 2][s][2 * i + m % 2] = table[(2 + m) * 32];
      }
  }

  // multiply computes one window's sums for each of the lane's filters. near is the window's first
  // word.
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

  // storePixels writes all four elements of a window, for each filter.
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

  // border zeroes the block's words around count images.
  INLINE void border(int image, int count) const {
    constexpr int chunks = side / Taps::perWord / 4, words = chunks * 4;
    const unsigned zero = opaque(0);  // otherwise clang writes the 16 bytes in halves
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

  // store writes the maxima of four windows for each filter.
  INLINE void store(const float (&best)[4][4], int image, int filter, int window) const {
#pragma unroll
    for (int m = 0; m < 4; m++) {
      int k = filter + m, at = (image * c.K + k) * windows() + window;
      if (k < c.K) *(Vector<float, 4>*)(pooled.data.at() + at) = {best[m][0], best[m][1], best[m][2], best[m][3]};
    }
  }

  // storeCopy writes the words of the packed copy that hold these windows' maxima, 16 bytes at a
  // time: one window's in tf32, two windows' in bf16. All lanes take part. In bf16, 16 bytes belong
  // to two lanes, which exchange halves and write one of the two windows each: neighbouring lines
  // in one store.
  template <int count>
  INLINE void storeCopy(const float (&best)[4][4], int begin, int image, bool there, const int* places) const {
    using Chunk = Vector<unsigned, 4>;
    unsigned lane = (unsigned)opaque(threadIdx.x) % 32, odd = count == 2 ? lane / 4 % 2 : 0;
    int word = blockIdx.x % count * (side / count) + lane / (4 * count) * 4;
    Chunk chunk;
    if constexpr (count == 2) {
      // Lanes 4 apart hold neighbouring groups of filters, and so the two halves of 16 bytes.
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

  // storeNotes writes the argmaxes of count images from shared memory, with the widest stores that
  // the alignment allows.
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

  // The layout of shared memory: the windows' offsets in an image, their lines in the copy, the
  // filters, the table of lanes' constants, the argmaxes of the images that are there together, and the images.
  INLINE void operator()(unsigned* memory) const {
    int groups = (windows() + group - 1) / group, first = blockIdx.y * each, last = minInt(first + each, c.B), lane = threadIdx.x % 32;
    int filter = lane / 4 * 4, *places = (int*)memory, *lines = places + groups * group;
    float* taps = (float*)(lines + groups * group);
    unsigned* table = (unsigned*)(taps + side * c.C * c.taps());
    unsigned char* notes = (unsigned char*)(table + fragmentWords * wordEntries * 32);
    unsigned* words = (unsigned*)(notes + together * side * windows());
    Lane own;
    loadBias(own, filter);
    const Filters brought = filters();
    fillImages<Words, warps>(c, x, words, first, minInt(together, last - first), width, plane, c.dilationW);
    windowOffsets(c, places, groups * group, width);
    for (int i = threadIdx.x; i < groups * group; i += blockDim.x) lines[i] = (i / (c.Q / 2) + copy.top) * copy.columns + i % (c.Q / 2) + copy.left;
    store(brought, taps);
    barrier();
    prepare(table, taps);
    barrier();
    load(own, table);
    const Floor least = floor();
    for (int begin = first; begin < last; begin += together) {
      int count = minInt(together, last - begin);
      if (begin > first) {
        fillImages<Words, warps>(c, x, words, begin, count, width, plane, c.dilationW);
        barrier();
      }
      if (written == onlyPacked || copy.there) border(begin, count);
      // A warp's groups of windows: every eighth, over all images that are in shared memory.
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
