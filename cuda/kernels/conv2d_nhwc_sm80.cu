// Convolutions of packed copies (nhwc.cuh) in tf32 and bf16 on the tensor cores, and the kernels
// that make the copies.
#include "nhwc.cuh"
#include "nhwcfilter.cuh"
#include "nhwcpack.cuh"

// PACKED defines the convolution of a packed image [B height width] by packed filters. The output
// has P x Q pixels per image; neighbouring pixels' lines are the strides apart. The gradient by the
// image is such a convolution, too, whose taps run backwards. Arguments that epilogue does not use
// (bias, pooled, argmax) may be any buffer.
#define PACKED(ending, ...)                                                                                                                   \
  KERNEL(conv2d_nhwc_##ending, (__VA_ARGS__::threads), (__VA_ARGS__::blocks))                                                                 \
  (Out<float> y, In<unsigned> x, In<unsigned> w, In<float> bias, Out<float> pooled, Out<unsigned char> argmax, int filters, int B, int height, \
   int width, int P, int Q, int strideH, int strideW, int blocks, int taps, int across, int first, int down, int right, int reach,            \
   int epilogue) {                                                                                                                            \
    DYNAMIC_SHARED(Line, memory);                                                                                                             \
    Convolution pixels = {B, 1, height, width, 1, 1, 1, P, Q, strideH, strideW, 0, 0, 1, 1};                                                  \
    Lines lines = {pixels, (epilogue & withPool) != 0, blocks, taps, across, first, down, right, reach};                                      \
    Output<float, true> out = {y.at(), bias.at(), filters, B * P * Q, P * Q, P * Q, filters * P * Q, epilogue, {pooled, argmax}};              \
    convolvePacked<__VA_ARGS__>(out, x.at(), w.at(), lines, (unsigned*)memory);                                                               \
  }

PACKED(64x128_tf32, PackedTile<TF32, 64, 128, 64, 32>)
PACKED(64x96_tf32, PackedTile<TF32, 64, 96, 32, 48>)
PACKED(64x64_tf32, PackedTile<TF32, 64, 64, 32, 32>)
PACKED(32x64_tf32, PackedTile<TF32, 32, 64, 32, 32>)
PACKED(64x128_bf16, PackedTile<BF16, 64, 128, 64, 32>)
PACKED(64x96_bf16, PackedTile<BF16, 64, 96, 32, 48>)
PACKED(64x64_bf16, PackedTile<BF16, 64, 64, 32, 32>)
PACKED(32x64_bf16, PackedTile<BF16, 32, 64, 32, 32>)

PACKED_FILTER(tf32, TF32, 8, Whole{}, Whole{})
PACKED_FILTER(bf16, BF16, 4, Whole{}, Whole{})

// PACK defines the kernels that make packed copies. sums may be any buffer if summed is 0.
#define PACK(ending, Number)                                                                                                             \
  KERNEL(nhwc_pack_##ending, 256)                                                                                                        \
  (Out<unsigned> to, In<float> from, Out<float> sums, int summed, int channels, int planeFrom, int channelFrom, int height, int width,   \
   int top, int left, int rows, int columns, int blocks, int planeTo, int blockTo) {                                                     \
    pack<Number>(to.at(), FromPlanes{from.at(), width}, sums, summed != 0, channels, planeFrom, channelFrom, height, width, top,         \
                 left, rows, columns, blocks, planeTo, blockTo);                                                                         \
  }                                                                                                                                      \
  KERNEL(nhwc_pack_spread_##ending, 256)                                                                                                 \
  (Out<unsigned> to, In<float> from, Out<float> sums, int summed, int channels, int planeFrom, int channelFrom, int height, int width,   \
   int top, int left, int rows, int columns, int blocks, int planeTo, int blockTo, int strideH, int strideW) {                           \
    pack<Number>(to.at(), FromSpread{{from.at(), width}, strideH, strideW}, sums, summed != 0, channels, planeFrom, channelFrom, height, \
                 width, top, left, rows, columns, blocks, planeTo, blockTo);                                                             \
  }                                                                                                                                      \
  KERNEL(nhwc_pack_windows_##ending, 256)                                                                                                \
  (Out<unsigned> to, In<float> dout, In<unsigned char> argmax, Out<float> sums, int summed, int channels, int planeFrom, int channelFrom, \
   int height, int width, int top, int left, int rows, int columns, int blocks, int planeTo, int blockTo) {                              \
    pack<Number>(to.at(), FromWindows{{dout.at(), argmax.at()}, width}, sums, summed != 0, channels, planeFrom, channelFrom,              \
                 height, width, top, left, rows, columns, blocks, planeTo, blockTo);                                                     \
  }

PACK(tf32, TF32)
PACK(bf16, BF16)
