// Convolutions of packed copies in chunked layout by wgmma; the filter's gradient from such copies;
// and the kernels that make them.
#include "nhwcfilter.cuh"
#include "nhwcgroup.cuh"
#include "nhwcgroupfilter.cuh"
#include "nhwcpack.cuh"

// STRIPS defines a convolution by wgmma with the given StripTile: strips of height rows, one or two
// to a block. Output pixels have a stride of 1; size is the number of lines of pixels that shared
// memory holds.
#define STRIPS(ending, ...)                                                                                                                        \
  KERNEL(conv2d_nhwc_group_##ending, (__VA_ARGS__::threads), (__VA_ARGS__::blocks))                                                                \
  (Out<float> y, In<unsigned> x, In<unsigned> w, In<float> bias, Out<float> pooled, Out<unsigned char> argmax, int filters, int B, int height,      \
   int width, int P, int Q, int blocks, int taps, int across, int first, int down, int right, int reach, int size, int epilogue) {                 \
    DYNAMIC_SHARED(AlignedShared, stages);                                                                                                                 \
    Convolution pixels = {B, 1, height, width, 1, 1, 1, P, Q, 1, 1, 0, 0, 1, 1};                                                                   \
    Lines lines = {pixels, false, blocks, taps, across, first, down, right, reach};                                                                \
    Output<float, true> out = {y.at(), bias.at(), filters, B * P * Q, P * Q, P * Q, filters * P * Q, epilogue, {pooled, argmax}};                   \
    convolveStrips<__VA_ARGS__>(out, x.at(), w.at(), lines, size, (unsigned*)stages);                                                              \
  }

// 16x16 is 16 rows by two strips of 8 columns, 14x8 is 14 rows by one strip.
STRIPS(16x16_bf16, StripTile<16, 2>)
STRIPS(14x16_bf16, StripTile<14, 2>)
STRIPS(14x8_bf16, StripTile<14, 1>)
STRIPS(8x16_bf16, StripTile<8, 2>)
STRIPS(8x8_bf16, StripTile<8, 1>)

PACKED_FILTER(chunks_bf16, BF16, 4, InChunks{4 * gradient.all()}, InChunks{4 * image.all()})

// The filter's gradient: see GradientRows for the arguments from doutHeight on. groups is how many
// blocks share the taps.
KERNEL(conv2d_nhwc_group_filter_bf16, GroupFilter::threads, GroupFilter::blocks)
(Out<float> partial, In<unsigned> dout, In<unsigned> x, int filters, int B, int height, int width, int P, int Q, int blocks, int taps, int across, int down,
 int right, int doutHeight, int doutWidth, int doutFirst, int doutBlocks, int steps, int rows, int each, int sizeX, int sizeDout,
 int depth, int groups) {
  DYNAMIC_SHARED(AlignedShared, stages);
  Lines image = {{B, 1, height, width, 1, 1, 1, P, Q, 1, 1, 0, 0, 1, 1}, false, blocks, taps, across, 0, down, right, 0};
  Lines gradient = {{B, 1, doutHeight, doutWidth, 1, 1, 1, P, Q, 1, 1, 0, 0, 1, 1}, false, doutBlocks, 1, 1, 0, 0, 0, 0};
  GradientRows way = {image, gradient, filters, doutFirst, steps, rows, each, sizeX, sizeDout, depth};
  convolveGroupFilter(partial.at(), dout.at(), x.at(), way, groups, (unsigned*)stages);
}

KERNEL(nhwc_pack_chunks_bf16, 256)
(Out<unsigned> to, In<float> from, Out<float> sums, int summed, int channels, int planeFrom, int channelFrom, int height, int width, int top, int left,
 int rows, int columns, int blocks, int planeTo, int blockTo, int lineTo, int run) {
  packChunks<BF16>(to.at(), FromPlanes{from.at(), width}, sums, summed != 0, channels, planeFrom, channelFrom, height, width, top, left, rows,
                   columns, blocks, planeTo, blockTo, lineTo, run);
}
KERNEL(nhwc_pack_spread_chunks_bf16, 256)
(Out<unsigned> to, In<float> from, Out<float> sums, int summed, int channels, int planeFrom, int channelFrom, int height, int width, int top, int left,
 int rows, int columns, int blocks, int planeTo, int blockTo, int lineTo, int run, int strideH, int strideW) {
  packChunks<BF16>(to.at(), FromSpread{{from.at(), width}, strideH, strideW}, sums, summed != 0, channels, planeFrom, channelFrom, height, width, top,
                   left, rows, columns, blocks, planeTo, blockTo, lineTo, run);
}
KERNEL(nhwc_pack_windows_chunks_bf16, 256)
(Out<unsigned> to, In<float> dout, In<unsigned char> argmax, Out<float> sums, int summed, int channels, int planeFrom, int channelFrom, int height, int width,
 int top, int left, int rows, int columns, int blocks, int planeTo, int blockTo, int lineTo, int run) {
  packWindows(to.at(), {dout.at(), argmax.at()}, sums, summed != 0, channels, planeFrom, channelFrom, height, width, top, left, rows, columns, blocks,
              planeTo, run);
}
