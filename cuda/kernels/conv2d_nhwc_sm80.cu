// Convolutions of packed copies, tf32 and bf16 on the tensor cores, and the packing.
#include "nhwc.cuh"
#include "nhwcfilter.cuh"
#include "windows.cuh"

// PACKED are the convolution of a packed image B height x width by packed filters. Its pixels are P x Q of each image, their lines strides apart; the
// gradient of an image is one, too, whose taps go backwards. bias, pooled and which are anything when epilogue asks for none.
#define PACKED(ending, ...)                                                                                                                   \
  KERNEL(conv2d_nhwc_##ending, (__VA_ARGS__::threads), (__VA_ARGS__::blocks))                                                                 \
  (Out<float> y, In<unsigned> x, In<unsigned> w, In<float> bias, Out<float> pooled, Out<unsigned char> which, int filters, int B, int height, \
   int width, int P, int Q, int strideH, int strideW, int blocks, int taps, int across, int first, int down, int right, int reach,            \
   int epilogue) {                                                                                                                            \
    DYNAMIC_SHARED(Line, memory);                                                                                                             \
    Convolution pixels = {B, 1, height, width, 1, 1, 1, P, Q, strideH, strideW, 0, 0, 1, 1};                                                  \
    Lines lines = {pixels, (epilogue & withPool) != 0, blocks, taps, across, first, down, right, reach};                                      \
    Output<float, true> out = {y.at(), bias.at(), filters, B * P * Q, P * Q, P * Q, filters * P * Q, epilogue, {pooled, which}};              \
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

// PACKED_FILTER is the gradient of a filter, into partial [slices filters taps channels], or into its first slice if the grid has none along y. A block has
// as many warps as it has taps, at most so many, and size lines of x to a stage. The gradient dout has its first pixel at the line doutFirst.
#define PACKED_FILTER(ending, Number, warps)                                                                                                     \
  KERNEL(conv2d_nhwc_filter_##ending, 32 * warps, 2)                                                                                             \
  (Out<float> partial, In<unsigned> dout, In<unsigned> x, int filters, int B, int height, int width, int P, int Q, int strideH, int strideW,     \
   int blocks, int taps, int across, int down, int right, int doutHeight, int doutWidth, int doutFirst, int doutBlocks, int size, int each) {    \
    DYNAMIC_SHARED(Line, memory);                                                                                                                \
    Lines image = {{B, 1, height, width, 1, 1, 1, P, Q, strideH, strideW, 0, 0, 1, 1}, false, blocks, taps, across, 0, down, right, 0};          \
    Lines gradient = {{B, 1, doutHeight, doutWidth, 1, 1, 1, P, Q, 1, 1, 0, 0, 1, 1}, false, doutBlocks, 1, 1, 0, 0, 0, 0};                      \
    convolvePackedFilter<Number>(partial.at(), dout.at() + doutFirst * line, x.at(), {image, gradient, filters, each}, size, (unsigned*)memory); \
  }

PACKED_FILTER(tf32, TF32, 8)
PACKED_FILTER(bf16, BF16, 4)

// pack writes planes of channels as lines: channel c of pixel (h, w) of a plane is from(plane planeFrom + c channelFrom, h, w), and is a part of line
// (h + top) columns + w + left of plane and block of channels, which begin planeTo and blockTo lines apart. Lines outside of the image are 0.
template <class Number, class From>
INLINE void pack(unsigned* to, From from, int channels, int planeFrom, int channelFrom, int height, int width, int top, int left, int rows, int columns,
                 int blocks, int planeTo, int blockTo) {
  constexpr int numbers = Numbers<Number>::word, some = line * numbers, lines = 32;
  SHARED(float, tile, lines * (some + 1));
  int lane = threadIdx.x % 32, warp = threadIdx.x / 32, tiles = (rows * columns + lines - 1) / lines;
  int begin = blockIdx.x % tiles * lines, block = blockIdx.x / tiles % blocks, plane = blockIdx.x / tiles / blocks;
  int at = begin + lane, h = at / columns - top, w = at % columns - left;
  bool inside = (unsigned)h < (unsigned)height & (unsigned)w < (unsigned)width;
#pragma unroll
  for (int i = 0; i < some; i += 8) {
    int channel = block * some + i + warp;
    tile[lane * (some + 1) + i + warp] = from(inside & (channel < channels), plane * planeFrom + channel * channelFrom, h, w);
  }
  barrier();
#pragma unroll
  for (int i = 0; i < lines; i += 8) {
    int n = i + warp;
    if (begin + n >= rows * columns) return;
    Vector<float, 4> v[2];
#pragma unroll
    for (int j = 0; j < numbers; j++) v[j].v[0] = tile[n * (some + 1) + lane * numbers + j];
    to[(plane * planeTo + block * blockTo + begin + n) * line + lane] = Number::word(v, 0, 0);
  }
}

// FromPlanes are planes of width columns; FromWindows those that windows' gradients make.
struct FromPlanes {
  const float* x;
  int width;

  INLINE float operator()(bool there, int plane, int h, int w) const { return loadIf(there, x + plane + h * width + w); }
};
struct FromWindows {
  Windows<float> windows;
  int width;

  INLINE float operator()(bool there, int plane, int h, int w) const {
    int at = plane / 4 + h / 2 * (width / 2) + w / 2;
    return loadIf(there && windows.which[at] == h % 2 * 2 + w % 2, windows.dout + at);
  }
};

#define PACK(ending, Number)                                                                                                                \
  KERNEL(nhwc_pack_##ending, 256)                                                                                                           \
  (Out<unsigned> to, In<float> from, int channels, int planeFrom, int channelFrom, int height, int width, int top, int left, int rows,      \
   int columns, int blocks, int planeTo, int blockTo) {                                                                                     \
    pack<Number>(to.at(), FromPlanes{from.at(), width}, channels, planeFrom, channelFrom, height, width, top, left, rows, columns, blocks,  \
                 planeTo, blockTo);                                                                                                         \
  }                                                                                                                                         \
  KERNEL(nhwc_pack_windows_##ending, 256)                                                                                                   \
  (Out<unsigned> to, In<float> dout, In<unsigned char> which, int channels, int planeFrom, int channelFrom, int height, int width, int top, \
   int left, int rows, int columns, int blocks, int planeTo, int blockTo) {                                                                 \
    pack<Number>(to.at(), FromWindows{{dout.at(), which.at()}, width}, channels, planeFrom, channelFrom, height, width, top, left, rows,    \
                 columns, blocks, planeTo, blockTo);                                                                                        \
  }

PACK(tf32, TF32)
PACK(bf16, BF16)
