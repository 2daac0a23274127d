// Rows of logits, each by a warp, in double as the host does it: they are few numbers, and a loss near 0 is a difference of large ones.
#pragma once
#include "math.cuh"
#include "reduce.cuh"

namespace pollen {

// SoftmaxRow is the largest logit of a row, and the sum of exp(logit - largest). All lanes of a warp have it.
struct SoftmaxRow {
  double top, total;

  INLINE double logTotal() const { return math::log(total); }
  INLINE double probability(double logit) const { return math::exp(logit - top) / total; }
};

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

// firstRow and rowStep are a grid-stride loop of warps over rows; a block is whole warps.
INLINE int firstRow() { return first() / 32; }
INLINE int rowStep() { return step() / 32; }

}  // namespace pollen
