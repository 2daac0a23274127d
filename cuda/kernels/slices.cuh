// Sums of a product's slices, in order.
#pragma once

#include "product.cuh"

namespace pollen {

// addSlices adds the next together slices from slice on, or with all unset those of them that
// exist. All loads are issued first, because the additions depend on each other.
template <int together, bool all, class Some, class T>
INLINE void addSlices(Some& sum, const T* partial, int n, int slice, int slices) {
  Some v[together];
#pragma unroll
  for (int j = 0; j < together; j++) v[j] = *(const Some*)(partial + (long long)(all ? slice + j : minInt(slice + j, slices - 1)) * n);
#pragma unroll
  for (int j = 0; j < together; j++)
#pragma unroll
    for (int k = 0; k < (int)(sizeof(Some) / sizeof(T)); k++)
      if (all || slice + j < slices) sum.v[k] += v[j].v[k];
}

// sumSlices adds slices of width elements, which are n apart, in order.
template <int width, class T>
INLINE Vector<T, width> sumSlices(const T* partial, int n, int slices) {
  using Some = Vector<T, width>;
  // For single elements sixteen loads are in flight, then eight, then four.
  constexpr int together = 16 / width, few = together < 8 ? together : 8;
  Some sum = *(const Some*)partial;
  int slice = 1;
  for (; slice + together <= slices; slice += together) addSlices<together, true>(sum, partial, n, slice, slices);
  if (few < together && slices - slice > 4) {
    addSlices<few, false>(sum, partial, n, slice, slices);
    slice += few;
  }
  for (; slice < slices; slice += 4) addSlices<4, false>(sum, partial, n, slice, slices);
  return sum;
}

}  // namespace pollen
