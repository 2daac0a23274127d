// Images as operands of an implicit matrix product: the elements of the im2col matrix are found by
// address, never stored.
//
// Tap (c, r, s) of a filter meets, at output pixel (b, p, q), the element of x [B C H W] whose
// position is a sum of two coordinates: one of the pixel and one of the tap. So each operand of the
// three directions is the sum of two short tables: one for the tile's side, made once, and one for
// the depths of a stage, made two stages ahead. Only making the tables needs divisions.
//
// Example, stride 1 and padding 1: pixel (0, 2, 3) has coordinate (plane 0, row 1, column 2), tap
// (c, 2, 0) has (plane c H W, row 2, column 0); the sum is row 3, column 2 of channel c.
#pragma once

#include "product.cuh"

namespace pollen {

// Convolution is a convolution's shape, in the notation of package graph/op.
struct Convolution {
  int B, C, H, W, K, R, S, P, Q, strideH, strideW, padH, padW, dilationH, dilationW;

  INLINE int taps() const { return R * S; }
  INLINE int outputs() const { return P * Q; }
  INLINE int inputs() const { return H * W; }
};

// Coord is one term of an element's position: the offset of its image and channel in memory, and
// its row and column, which may be outside the image.
struct alignas(16) Coord {
  int plane, row, column, unused;
};

// outsideRow added to any row, even to itself, is outside all images.
constexpr int outsideRow = -(1 << 29);

// Coordinates in x. PixelOfX is output pixel n of [B P Q] or, with windows, of [B P/2 Q/2 2 2],
// where four consecutive pixels are a pooling window. TapOfX is tap n of [C R S].
struct PixelOfX {
  Convolution c;
  bool windows;
  INLINE int count() const { return c.B * c.outputs(); }
  INLINE Coord at(int n) const {
    int image = n / c.outputs(), pixel = n - image * c.outputs(), p, q;
    if (windows) {
      int window = pixel / 4, across = c.Q / 2, i = window / across;
      p = 2 * i + pixel / 2 % 2, q = 2 * (window - i * across) + pixel % 2;
    } else {
      p = pixel / c.Q, q = pixel - p * c.Q;
    }
    return {image * c.C * c.inputs(), p * c.strideH - c.padH, q * c.strideW - c.padW, 0};
  }
};
struct TapOfX {
  Convolution c;
  INLINE int count() const { return c.C * c.taps(); }
  INLINE Coord at(int n) const {
    int channel = n / c.taps(), tap = n - channel * c.taps(), r = tap / c.S, s = tap - r * c.S;
    return {channel * c.inputs(), r * c.dilationH, s * c.dilationW, 0};
  }
};

// Coordinates in dout, for the gradient by x. PixelOfGradient is input pixel n of [B H W],
// TapOfGradient tap n of [K R S]. Rows and columns are multiplied by the strides: those that are no
// multiple of the stride meet no element.
struct PixelOfGradient {
  Convolution c;
  INLINE int count() const { return c.B * c.inputs(); }
  INLINE Coord at(int n) const {
    int image = n / c.inputs(), pixel = n - image * c.inputs(), h = pixel / c.W, w = pixel - h * c.W;
    return {image * c.K * c.outputs(), h + c.padH, w + c.padW, 0};
  }
};
struct TapOfGradient {
  Convolution c;
  INLINE int count() const { return c.K * c.taps(); }
  INLINE Coord at(int n) const {
    int filter = n / c.taps(), tap = n - filter * c.taps(), r = tap / c.S, s = tap - r * c.S;
    return {filter * c.outputs(), -r * c.dilationH, -s * c.dilationW, 0};
  }
};

// Coordinates in the filter [K C R S], for the gradient by x: channel n of C, and tap n of [K R S].
struct ChannelOfFilter {
  Convolution c;
  INLINE int count() const { return c.C; }
  INLINE Coord at(int n) const { return {n * c.taps(), 0, 0, 0}; }
};
struct TapOfFilter {
  Convolution c;
  INLINE int count() const { return c.K * c.taps(); }
  INLINE Coord at(int n) const {
    int filter = n / c.taps();
    return {filter * c.C * c.taps() + n - filter * c.taps(), 0, 0, 0};
  }
};

// Coordinates in dout, for the gradient by the filter: filter n of K, and output pixel n of [B P
// Q].
struct FilterOfOutput {
  Convolution c;
  INLINE int count() const { return c.K; }
  INLINE Coord at(int n) const { return {n * c.outputs(), 0, 0, 0}; }
};
struct PixelOfOutput {
  Convolution c;
  INLINE int count() const { return c.B * c.outputs(); }
  INLINE Coord at(int n) const {
    int image = n / c.outputs();
    return {image * c.K * c.outputs() + n - image * c.outputs(), 0, 0, 0};
  }
};

// Bounds decides which sums of rows and columns are in an image of height x width. With strides
// above 1 rows and columns are in units of 1/stride.
struct Bounds {
  int height, width, strideH, strideW;
};

// Im2colOperand is an operand whose elements lie at sums of coordinates. Without strides above 1,
// plane already includes row and column, which then only decide whether the element is in the
// image.
//
// A different warp makes the table of depths each time: otherwise their divisions would always
// delay the same quarter of the multiprocessor. The warps of two operands are lead threads apart.
template <class T, class Sides, class Depths, bool alongDepth, int Side, int Depth, int threads, int lead = 0>
struct Im2colOperand {
  const T* data;
  Sides sides;
  Depths depths;
  Bounds bounds;
  Coord *side, *depth;  // [Side], [2][Depth], shared

  static constexpr int coords = Side + 2 * Depth;

  INLINE bool strided() const { return bounds.strideH > 1 | bounds.strideW > 1; }

  INLINE void begin(int x) {
    for (int i = threadIdx.x; i < Side; i += blockDim.x) side[i] = coordOf(sides, x + i, sides.count());
  }
  INLINE void advance(int k, int end, int parity) {
    // (32 / Depth) * k moves the work by one warp per stage.
    unsigned at = (threadIdx.x + (32 / Depth) * k + lead) % threads;
    if (at >= Depth) return;
    // Hiding the divisors keeps their reciprocals from staying in registers from stage to stage.
    Depths now = depths;
    now.c.S = opaque(now.c.S), now.c.Q = opaque(now.c.Q);
    depth[parity * Depth + at] = coordOf(now, k + at, end);
  }
  template <class Places>
  INLINE Coord coordOf(const Places& coords, int n, int end) const {
    if (n >= end) return {0, outsideRow, 0, 0};
    Coord p = coords.at(n);
    if (!strided()) p.plane += p.row * bounds.width + p.column;
    return p;
  }

  INLINE bool inChunks() const { return false; }

  template <class Stage, class F>
  INLINE void chunks(int, int, F) const {}

  template <class Stage, bool numbered, class F>
  INLINE void words(int, int parity, F f) const {
    if (strided())
      elements<Stage, true, numbered ? Stage::count : 1>(parity, f);
    else
      elements<Stage, false, Stage::count>(parity, f);
  }

  // elements calls f for each of the thread's elements. One of the two coordinates is fixed per
  // thread, the side's for the layout alongSide and the depth's for alongDepth; the other is read
  // from its table for each element.
  template <class Stage, bool strided, int together, class F>
  INLINE void elements(int parity, F f) const {
    unsigned thread = opaque(threadIdx.x);
    int strideH = strided ? opaque(bounds.strideH) : 1, strideW = strided ? opaque(bounds.strideW) : 1;
    const Coord* depth = this->depth + parity * Depth;
    auto p = alongDepth ? Stage::alongDepth(thread, 0) : Stage::alongSide(thread, 0);
    Coord a = side[p.x], b = depth[p.d];
    // Several elements are looked up before the first of them is copied: after each read of shared
    // memory, a copy into it waits.
    constexpr int some = together < Stage::count ? 1 : Stage::count < 8 ? Stage::count : 8;
#pragma unroll together
    for (int i = 0; i < Stage::count; i += some) {
      int offsets[some];
      bool there[some];
#pragma unroll
      for (int j = 0; j < some; j++) {
        if (alongDepth)
          a = side[p.x + Stage::alongDepth(0, i + j).acrossX];
        else
          b = depth[p.d + Stage::alongSide(0, i + j).acrossD];
        int row = a.row + b.row, column = a.column + b.column;
        offsets[j] = a.plane + b.plane;
        there[j] = true;
        if (strided) {
          int y = row / strideH, x = column / strideW;
          there[j] = y * strideH == row & x * strideW == column;
          row = y, column = x;
          // Outside the image the offset is meaningless and may wrap.
          offsets[j] = (unsigned)offsets[j] + (unsigned)row * bounds.width + column;
        }
        there[j] &= (unsigned)row < (unsigned)bounds.height & (unsigned)column < (unsigned)bounds.width;
      }
#pragma unroll
      for (int j = 0; j < some; j++) {
        if (alongDepth)
          p.acrossX = Stage::alongDepth(0, i + j).acrossX;
        else
          p.acrossD = Stage::alongSide(0, i + j).acrossD;
        f(i + j, p.offset(), data + offsets[j], there[j]);
      }
    }
  }
};

}  // namespace pollen
