// Convolutions as implicit matrix products, in three directions; x [B C H W], w [K C R S], y [B K P
// Q]. The im2col matrices are never stored: im2col.cuh computes their elements' addresses.
//
//     y(k, bpq)  = sum over crs of w(k, crs) x(crs, bpq)    with a bias per k, ReLU, 2 x 2 max-pooling
//     dx(c, bhw) = sum over krs of w(c, krs) dout(krs, bhw)
//     dw(k, crs) = sum over bpq of dout(k, bpq) x(bpq, crs)
#pragma once

#include "im2col.cuh"

namespace pollen {

// Memory is a block's shared memory: the stages, followed by the coordinates of both operands.
template <class Shape, class T>
struct Memory {
  T* stages;
  Coord* coords;

  INLINE Memory(Coord* from) : stages((T*)from), coords(from + Shape::memory * sizeof(T) / sizeof(Coord)) {}
};

// convolveForward: a is the filter as a matrix [K, C R S], b the patches, [C R S, B P Q]. An
// image's output is contiguous per filter, so the runs of Output are images.
template <class Shape, class T>
INLINE void convolveForward(Memory<Shape, T> memory, T* y, const T* x, const T* w, const T* bias, Pooled<T> pooled, Convolution c, int epilogue,
                            Slices slices) {
  using Patches = Im2colOperand<T, PixelOfX, TapOfX, false, Shape::columns, Shape::depth, Shape::threads>;
  Matrix<T> left = {w, c.K, slices.depth, true};
  Patches right = {x, {c, (epilogue & withPool) != 0}, {c}, {c.H, c.W, 1, 1}, memory.coords, memory.coords + Shape::columns};
  Output<T, true> out = {y, bias, c.K, c.B * c.outputs(), c.outputs(), c.outputs(), c.K * c.outputs(), epilogue, pooled};
  multiply<Shape>(left, right, out, slices, memory.stages);
}

// convolveBackward: a is the filter [C, K R S], whose elements need a table of coordinates because
// K and C change places; b is dout seen through the filter, [K R S, B H W].
template <class Shape, class T>
INLINE void convolveBackward(Memory<Shape, T> memory, T* dx, const T* dout, const T* w, Convolution c, Slices slices) {
  using Filter = Im2colOperand<T, ChannelOfFilter, TapOfFilter, true, Shape::rows, Shape::depth, Shape::threads>;
  using Patches = Im2colOperand<T, PixelOfGradient, TapOfGradient, false, Shape::columns, Shape::depth, Shape::threads, 32>;
  Coord* coords = memory.coords + Filter::coords;
  Filter left = {w, {c}, {c}, {1, 1, 1, 1}, memory.coords, memory.coords + Shape::rows};
  Patches right = {dout, {c}, {c}, {c.P, c.Q, c.strideH, c.strideW}, coords, coords + Shape::columns};
  Output<T> out = {dx, dx, c.C, c.B * c.inputs(), c.inputs(), c.inputs(), c.C * c.inputs(), 0};
  multiply<Shape>(left, right, out, slices, memory.stages);
}

// convolveFilter: a is dout [K, B P Q], b the patches transposed, [B P Q, C R S]. The depth is the
// pixels, which are many, so this direction is the one that usually splits its depth.
template <class Shape, class T>
INLINE void convolveFilter(Memory<Shape, T> memory, T* dw, const T* dout, const T* x, Convolution c, Slices slices) {
  using Gradient = Im2colOperand<T, FilterOfOutput, PixelOfOutput, true, Shape::rows, Shape::depth, Shape::threads>;
  using Patches = Im2colOperand<T, TapOfX, PixelOfX, true, Shape::columns, Shape::depth, Shape::threads, 32>;
  Coord* coords = memory.coords + Gradient::coords;
  Gradient left = {dout, {c}, {c}, {1, 1, 1, 1}, memory.coords, memory.coords + Shape::rows};
  Patches right = {x, {c}, {c}, {c.H, c.W, 1, 1}, coords, coords + Shape::columns};
  int taps = c.C * c.taps();
  Output<T> out = {dw, dw, c.K, taps, taps, taps, 0, 0};
  multiply<Shape>(left, right, out, slices, memory.stages);
}

}  // namespace pollen

#define SHAPE int B, int C, int H, int W, int K, int R, int S, int P, int Q, int sH, int sW, int pH, int pW, int dH, int dW
#define CONVOLUTION Convolution{B, C, H, W, K, R, S, P, Q, sH, sW, pH, pW, dH, dW}

// CONV2D defines three kernels, one per direction, that use the tile given after the name's ending
// and the type. The launch provides shared memory for Memory. Arguments that epilogue does not use
// (bias, pooled, argmax) may be any buffer. If the grid splits the depth along y, the result is a
// workspace of partial sums, and the kernel that adds them (slices.cu) does the pooling.
#define CONV2D(ending, T, ...)                                                                                                   \
  KERNEL(conv2d_fwd_##ending, (__VA_ARGS__::threads), (__VA_ARGS__::blocks))                                                     \
  (Out<T> y, In<T> x, In<T> w, In<T> bias, Out<T> pooled, Out<unsigned char> argmax, SHAPE, int epilogue, int slices, int each) { \
    DYNAMIC_SHARED(Coord, memory);                                                                                               \
    Slices cut = {C * R * S, slices, each};                                                                                      \
    convolveForward<__VA_ARGS__, T>(memory, y.at(), x.at(), w.at(), bias.at(), {pooled, argmax}, CONVOLUTION, epilogue, cut);     \
  }                                                                                                                              \
  KERNEL(conv2d_bwd_input_##ending, (__VA_ARGS__::threads), (__VA_ARGS__::blocks))                                               \
  (Out<T> dx, In<T> dout, In<T> w, SHAPE, int slices, int each) {                                                                \
    DYNAMIC_SHARED(Coord, memory);                                                                                               \
    Slices cut = {K * R * S, slices, each};                                                                                      \
    convolveBackward<__VA_ARGS__, T>(memory, dx.at(), dout.at(), w.at(), CONVOLUTION, cut);                                      \
  }                                                                                                                              \
  KERNEL(conv2d_bwd_filter_##ending, (__VA_ARGS__::threads), (__VA_ARGS__::blocks))                                              \
  (Out<T> dw, In<T> dout, In<T> x, SHAPE, int slices, int each) {                                                                \
    DYNAMIC_SHARED(Coord, memory);                                                                                               \
    Slices cut = {B * P * Q, slices, each};                                                                                      \
    convolveFilter<__VA_ARGS__, T>(memory, dw.at(), dout.at(), x.at(), CONVOLUTION, cut);                                        \
  }
