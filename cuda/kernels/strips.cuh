// Strips of planes: what kernels share whose threads go down the rows of a column (depthwise.cu,
// pool.cu).
#pragma once

#include "pollen.cuh"

namespace pollen {

// Place is the strip of a thread: strip number strip of column number column, of those that are one
// or two elements wide.
struct Place {
  int column, strip, plane;

  INLINE Place(unsigned i, unsigned columns, unsigned strips) {
    unsigned line = i / columns;
    column = i - line * columns, plane = line / strips, strip = line - plane * strips;
  }
};

// loadRow loads count elements of a row from column left on; those outside are 0.
template <int count>
INLINE void loadRow(float (&v)[count], const float* plane, int row, int left, int height, int width) {
  const float* from = plane + (row * width + left);
  bool inside = (unsigned)row < (unsigned)height;
#pragma unroll
  for (int s = 0; s < count; s++) v[s] = loadIf(inside & ((unsigned)(left + s) < (unsigned)width), from + s);
}

// firstPair and pairs describe the pairs that n rows, or columns, of an image form for windows with
// stride 2. With padding, row h is row h + pad of the padded image, in pair (h + pad)/2: all first
// rows of pairs meet the same rows of windows, and so do all second ones.
INLINE int firstPair(int pad) { return pad / 2; }
INLINE int pairs(int n, int pad) { return (pad + n - 1) / 2 - pad / 2 + 1; }

constexpr int stripPairs = 4;  // pairs of rows of a strip

}  // namespace pollen
