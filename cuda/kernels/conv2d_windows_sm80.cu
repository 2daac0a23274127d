// Convolutions of images with few channels on the tensor cores, by pooling windows of 2 x 2:
// forward, and the gradient of the filter.
#include "windowforward.cuh"

// FORWARD defines a convolution whose filters have at most 32 taps. written selects what it stores:
// all pixels, the windows' maxima, or only a packed copy of the maxima. The grid's blocks are 32
// filters by images. Buffers that epilogue does not use may be any buffer, and so may copy if
// copies is 0; with 1 the copy has whole lines, with 2 it is chunked. The blocks of 32 filters that
// share a line share the work of zeroing its border.
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

// FILTER defines the gradient of a filter, partial [slices, K C R S], and, if summed is set, of its
// bias, [slices, K]. The grid's blocks are 32 taps by 32 filters.
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
