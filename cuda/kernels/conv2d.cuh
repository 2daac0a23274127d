// Convolutions as products, in three directions; x [B C H W], w [K C R S], y [B K P Q]. None of the matrices of patches exists, see window.cuh.
//
//     y(k, bpq)  = sum over crs of w(k, crs) x(crs, bpq)                   with a bias per k and a ReLU
//     dx(c, bhw) = sum over krs of w(c, krs) dout(krs, bhw)
//     dw(k, crs) = sum over bpq of dout(k, bpq) x(bpq, crs)
#pragma once

#include "window.cuh"

namespace pollen {

template <class Shape, class T, class Memory>
INLINE void convolveForward(Memory* memory, Place* places, T* y, const T* x, const T* w, const T* bias, Convolution c, int epilogue, Slices slices) {
  Matrix<T, true> left = {w, c.K, slices.depth};
  using Patches = Window<T, PixelOfX, TapOfX, false, false, Shape::columns, Shape::depth>;
  Patches right = {x, {c}, {c}, {c.H, c.W, 1, 1}, places, places + Shape::columns};
  Output<T> out = {y, bias, c.K, c.B * c.outputs(), c.outputs(), c.outputs(), c.K * c.outputs(), epilogue};
  multiply<Shape>(left, right, out, slices, memory);
}

template <class Shape, bool strided, class T, class Memory>
INLINE void convolveBackward(Memory* memory, Place* places, T* dx, const T* dout, const T* w, Convolution c, Slices slices) {
  using Filter = Window<T, ChannelOfFilter, TapOfFilter, true, false, Shape::rows, Shape::depth>;
  using Patches = Window<T, PixelOfGradient, TapOfGradient, false, strided, Shape::columns, Shape::depth>;
  Filter left = {w, {c}, {c}, {1, 1, 1, 1}, places, places + Shape::rows};
  places += Filter::places;
  Patches right = {dout, {c}, {c}, {c.P, c.Q, c.strideH, c.strideW}, places, places + Shape::columns};
  Output<T> out = {dx, dx, c.C, c.B * c.inputs(), c.inputs(), c.inputs(), c.C * c.inputs(), 0};
  multiply<Shape>(left, right, out, slices, memory);
}

template <class Shape, class T, class Memory>
INLINE void convolveFilter(Memory* memory, Place* places, T* dw, const T* dout, const T* x, Convolution c, Slices slices) {
  using Gradient = Window<T, FilterOfOutput, PixelOfOutput, true, false, Shape::rows, Shape::depth>;
  using Patches = Window<T, TapOfX, PixelOfX, true, false, Shape::columns, Shape::depth>;
  Gradient left = {dout, {c}, {c}, {1, 1, 1, 1}, places, places + Shape::rows};
  places += Gradient::places;
  Patches right = {x, {c}, {c}, {c.H, c.W, 1, 1}, places, places + Shape::columns};
  int taps = c.C * c.taps();
  Output<T> out = {dw, dw, c.K, taps, taps, taps, 0, 0};
  multiply<Shape>(left, right, out, slices, memory);
}

}  // namespace pollen

#define SHAPE int B, int C, int H, int W, int K, int R, int S, int P, int Q, int sH, int sW, int pH, int pW, int dH, int dW
#define CONVOLUTION Convolution{B, C, H, W, K, R, S, P, Q, sH, sW, pH, pW, dH, dW}
#define MEMORY                       \
  SHARED(Stages<Shape>, memory, 1);  \
  SHARED(Place, places, (Shape::rows + Shape::columns + 4 * Shape::depth))

// CONV2D are three kernels, one for each direction, with the tile that follows their names' ending and type. bias is anything when epilogue asks for
// none; the result is workspace when the grid has slices along y.
#define CONV2D(ending, T, ...)                                                                                                  \
  KERNEL(conv2d_fwd_##ending, (__VA_ARGS__::threads))                                                                           \
  (Out<T> y, In<T> x, In<T> w, In<T> bias, SHAPE, int epilogue, int slices, int each) {                                         \
    using Shape = __VA_ARGS__;                                                                                                  \
    MEMORY;                                                                                                                     \
    Slices cut = {C * R * S, slices, each};                                                                                     \
    convolveForward<Shape>(memory[0].words, places, y.at(), x.at(), w.at(), bias.at(), CONVOLUTION, epilogue, cut);             \
  }                                                                                                                             \
  KERNEL(conv2d_bwd_input_##ending, (__VA_ARGS__::threads))                                                                     \
  (Out<T> dx, In<T> dout, In<T> w, SHAPE, int slices, int each) {                                                               \
    using Shape = __VA_ARGS__;                                                                                                  \
    MEMORY;                                                                                                                     \
    Slices cut = {K * R * S, slices, each};                                                                                     \
    if (sH > 1 || sW > 1) convolveBackward<Shape, true>(memory[0].words, places, dx.at(), dout.at(), w.at(), CONVOLUTION, cut); \
    else convolveBackward<Shape, false>(memory[0].words, places, dx.at(), dout.at(), w.at(), CONVOLUTION, cut);                 \
  }                                                                                                                             \
  KERNEL(conv2d_bwd_filter_##ending, (__VA_ARGS__::threads))                                                                    \
  (Out<T> dw, In<T> dout, In<T> x, SHAPE, int slices, int each) {                                                               \
    using Shape = __VA_ARGS__;                                                                                                  \
    MEMORY;                                                                                                                     \
    Slices cut = {B * P * Q, slices, each};                                                                                     \
    convolveFilter<Shape>(memory[0].words, places, dw.at(), dout.at(), x.at(), CONVOLUTION, cut);                               \
  }
