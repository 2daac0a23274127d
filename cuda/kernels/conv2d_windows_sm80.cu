// Convolutions of images of few channels on the tensor cores, by windows of 2 x 2: forward, and the gradient of the filter.
#include "windowforward.cuh"

// FORWARD is a convolution whose filters have few taps, which is whole, or pools, with maxima that are written or only packed. The grid's blocks are 32
// filters by images. Of the buffers that are written, those are anything that epilogue does not ask for, and copy if copies is 0: else it is a packed copy
// of the maxima, of whole lines with 1, in whose border all blocks of 32 filters of its lines have a part.
#define FORWARD(ending, Number, written, blocks)                                                                                             \
  KERNEL(conv2d_windows_##ending, 256, blocks)                                                                                               \
  (Out<float> y, In<float> x, In<float> w, In<float> bias, Out<float> pooled, Out<unsigned char> argmax, Out<unsigned> copy, int B, int C,    \
   int H, int W, int K, int R, int S, int P, int Q, int strideH, int strideW, int padH, int padW, int dilationH, int dilationW, int copies,  \
   int rows, int columns, int top, int left, int epilogue, int each, int together, int width, int plane) {                                   \
    DYNAMIC_SHARED(Line, memory);                                                                                                            \
    Convolution c = {B, C, H, W, K, R, S, P, Q, strideH, strideW, padH, padW, dilationH, dilationW};                                         \
    Copy to = {copies != 0, copy.at(), rows, columns, top, left, B * rows * columns, copies == 2};                                                  \
    ForwardOfWindows<Number, written>{c, x.at(), w.at(), bias.at(), y.at(), {pooled, argmax}, to, epilogue, each, together, width, plane}(      \
        (unsigned*)memory);                                                                                                                  \
  }

FORWARD(pool_tf32, TF32, theMaxima, 1)
FORWARD(pool_bf16, BF16, theMaxima, 2)
FORWARD(pack_tf32, TF32, onlyPacked, 1)
FORWARD(pack_bf16, BF16, onlyPacked, 2)
FORWARD(whole_tf32, TF32, allPixels, 1)
FORWARD(whole_bf16, BF16, allPixels, 2)

// FILTER is the gradient of a filter, partial [slices, K C R S], and of its bias if summed, [slices, K]. The grid's blocks are 32 taps by 32 filters.
#define FILTER(ending, Number)                                                                                                               \
  KERNEL(conv2d_windows_filter_##ending, 256, 2)                                                                                             \
  (Out<float> partial, In<float> dout, In<unsigned char> argmax, In<float> x, Out<float> sums, int B, int C, int H, int W, int K, int R, \
   int S, int P, int Q, int strideH, int strideW, int padH, int padW, int dilationH, int dilationW, int summed, int each, int together, \
   int width, int plane) {                                                                                                              \
    DYNAMIC_SHARED(Line, memory);                                                                                                            \
    Convolution c = {B, C, H, W, K, R, S, P, Q, strideH, strideW, padH, padW, dilationH, dilationW};                                         \
    ProductOfWindows<Number>{c, {dout.at(), argmax.at()}, x.at(), each, together, width, plane}(partial, sums, summed != 0,              \
                                                                                               (unsigned*)memory);                      \
  }

FILTER(tf32, TF32)
FILTER(bf16, BF16)
