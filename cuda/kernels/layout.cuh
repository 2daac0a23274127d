// Strided indexing of operands that are broadcast along some axes, or read in another order:
// package graph/op/internal/strided.
#pragma once
#include "pollen.cuh"

namespace pollen {

// Layout has the extents and strides of axes, the innermost last; unused axes have extent 1. A
// stride of 0 broadcasts. Example: the transpose of a 2 x 3 matrix has extents (3, 2) and strides
// (1, 3).
template <int axes>
struct Layout {
  int extents[axes], strides[axes];

  // at returns the offset of element i in row-major order of the extents.
  INLINE int at(int i) const {
    int offset = 0;
#pragma unroll
    for (int axis = axes - 1; axis > 0; axis--) {
      int extent = extents[axis];
      if (extent == 1) continue;
      int outer = i / extent;
      offset += (i - outer * extent) * strides[axis];
      i = outer;
    }
    return offset + i * strides[0];
  }
};

}  // namespace pollen

// LAYOUT3 and LAYOUT6 declare a layout's integers as kernel arguments; LAYOUT3_OF and LAYOUT6_OF
// make the Layout of them.
#define LAYOUT3(w) int w##e0, int w##e1, int w##e2, int w##s0, int w##s1, int w##s2
#define LAYOUT3_OF(w) \
  (Layout<3>) { {w##e0, w##e1, w##e2}, {w##s0, w##s1, w##s2} }
#define LAYOUT6(w)                                                                                                                  \
  int w##e0, int w##e1, int w##e2, int w##e3, int w##e4, int w##e5, int w##s0, int w##s1, int w##s2, int w##s3, int w##s4, int w##s5
#define LAYOUT6_OF(w) \
  (Layout<6>) { {w##e0, w##e1, w##e2, w##e3, w##e4, w##e5}, {w##s0, w##s1, w##s2, w##s3, w##s4, w##s5} }
