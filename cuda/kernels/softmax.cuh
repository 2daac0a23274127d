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

// softmaxRow makes two passes over the row: the maximum, which keeps exp from overflowing, and the
// sum.
template <class T>
INLINE SoftmaxRow softmaxRow(const T* z, int classes) {
  int lane = threadIdx.x % 32;
  T top = z[0];
  for (int k = lane; k < classes; k += 32) top = math::maximum(top, z[k]);
  SoftmaxRow row = {warpMaximum(top), 0};
  for (int k = lane; k < classes; k += 32) row.total += math::exp((double)z[k] - row.top);
  row.total = warpSum(row.total);
  return row;
}

// firstRow and rowStep make a grid-stride loop of warps over rows; a block must consist of whole
// warps.
INLINE int firstRow() { return first() / 32; }
INLINE int rowStep() { return step() / 32; }

}  // namespace pollen
