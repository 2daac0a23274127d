// Softmax of rows of logits, one warp per row, in double as on the host: the numbers are few, and a
// loss near 0 is a difference of large ones.
#pragma once
#include "math.cuh"
#include "reduce.cuh"

namespace pollen {

// SoftmaxRow is a row's largest logit and the sum of exp(logit - largest), in all lanes of a warp.
struct SoftmaxRow {
  double top, total;

  INLINE double logTotal() const { return math::log(total); }
  INLINE double probability(double logit) const { return math::exp(logit - top) / total; }
};

// lanesOf returns how many lanes of a warp share a row in softmaxRow, as a power of two: with few
// classes a warp can have several rows at once. The other lanes of a whole warp would only add 0 to
// the sum, so the bits are the same.
INLINE int lanesOf(int classes) { return classes > 16 ? 5 : classes > 8 ? 4 : 3; }

// softmaxRow makes two passes over the row: the maximum, which keeps exp from overflowing, and the
// sum. 2^power lanes of the warp share the row.
template <class T>
INLINE SoftmaxRow softmaxRow(const T* z, int classes, int power = 5) {
  int lanes = 1 << power, lane = threadIdx.x & lanes - 1;
  T top = z[0];
  for (int k = lane; k < classes; k += lanes) top = math::maximum(top, z[k]);
  for (int mask = lanes / 2; mask > 0; mask >>= 1) {
    T other = shuffleXor(top, mask);
    top = top != top || top > other ? top : other;
  }
  SoftmaxRow row = {top, 0};
  for (int k = lane; k < classes; k += lanes) row.total += math::exp((double)z[k] - row.top);
  for (int mask = lanes / 2; mask > 0; mask >>= 1) row.total += shuffleXor(row.total, mask);
  return row;
}

// firstRow and rowStep make a grid-stride loop of warps over rows; a block must consist of whole
// warps.
INLINE int firstRow() { return first() / 32; }
INLINE int rowStep() { return step() / 32; }

}  // namespace pollen
