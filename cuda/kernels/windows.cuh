// Gradients before pooling, read as their windows hold them. A convolution that pools in its
// epilogue stores each window's argmax (product.cuh), so the gradient before pooling is the
// window's gradient at the argmax and 0 elsewhere. Kernels that read it in this form read a quarter
// of the numbers, and the other three quarters are never written.
#pragma once

#include "product.cuh"

namespace pollen {

// Windows are adjacent 2 x 2 pooling windows: dout has a window's gradient, argmax the number of
// its maximum's element, or noMaximum.
template <class T>
struct Windows {
  const T* dout;
  const unsigned char* argmax;

  // counted returns the gradient that window i passes to its maximum.
  INLINE T counted(int i) const { return argmax[i] == noMaximum ? T(0) : dout[i]; }
};

}  // namespace pollen
