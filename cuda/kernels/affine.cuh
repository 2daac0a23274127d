// How the bytes of an image become numbers.
#pragma once

#include "pollen.cuh"

namespace pollen {

// Affine is y = x scale + shift with constants per plane (channel), of up to four planes of plane
// elements each. i is an element of an image.
template <class T>
struct Affine {
  int plane;
  T scale0, shift0, scale1, shift1, scale2, shift2, scale3, shift3;
  INLINE T scale(int i) const { return i < plane ? scale0 : i < 2 * plane ? scale1 : i < 3 * plane ? scale2 : scale3; }
  INLINE T shift(int i) const { return i < plane ? shift0 : i < 2 * plane ? shift1 : i < 3 * plane ? shift2 : shift3; }
};

}  // namespace pollen

// AFFINE declares the numbers of an Affine as kernel arguments; AFFINE_OF makes the Affine of them.
#define AFFINE(T) int plane, T scale0, T shift0, T scale1, T shift1, T scale2, T shift2, T scale3, T shift3
#define AFFINE_OF(T) \
  (Affine<T>) { plane, scale0, shift0, scale1, shift1, scale2, shift2, scale3, shift3 }
