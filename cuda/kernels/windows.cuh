// Gradients that come from windows. A convolution that pools in its epilogue has noted which element of a window was its maximum (product.cuh): its gradient
// is the window's there and 0 elsewhere. Kernels that read it as the windows have it read a quarter of the numbers, and nobody writes the others.
#pragma once

#include "product.cuh"

namespace pollen {

// Windows are 2 x 2, side by side: dout is a window's gradient, which its maximum's element, or noMaximum.
template <class T>
struct Windows {
  const T* dout;
  const unsigned char* argmax;

  // counted is what window i gives its maximum.
  INLINE T counted(int i) const { return argmax[i] == noMaximum ? T(0) : dout[i]; }
};

}  // namespace pollen
