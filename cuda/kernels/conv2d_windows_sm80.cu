// The gradient of a convolution's filter of few taps on the tensor cores, from windows' gradients.
#include "windowproduct.cuh"

// FILTER is the gradient of a filter, partial [slices, K C R S]. The grid's blocks are 32 taps by 32 filters.
#define FILTER(ending, Number)                                                                                                               \
  KERNEL(conv2d_windows_filter_##ending, 256, 2)                                                                                             \
  (Out<float> partial, In<float> dout, In<unsigned char> which, In<float> x, int B, int C, int H, int W, int K, int R, int S, int P, int Q,  \
   int strideH, int strideW, int padH, int padW, int dilationH, int dilationW, int each, int together, int width, int plane) {               \
    DYNAMIC_SHARED(Line, memory);                                                                                                            \
    Convolution c = {B, C, H, W, K, R, S, P, Q, strideH, strideW, padH, padW, dilationH, dilationW};                                         \
    ProductOfWindows<Number>{c, {dout.at(), which.at()}, x.at(), each, together, width, plane}(partial.at(), (unsigned*)memory);             \
  }

FILTER(tf32, TF32)
FILTER(bf16, BF16)
