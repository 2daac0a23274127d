// Convolutions of one tap with stride 1 and without padding, x [B C pixels], w [K C] -> y [B K
// pixels], as products of matrices whose pixels come in images:
//
//     y(k, bp)  = sum over c of w(k, c) x(c, bp)
//     dx(c, bp) = sum over k of w(k, c) dout(k, bp)
//     dw(k, c)  = sum over bp of dout(k, bp) x(c, bp)
//
// The number of an image's pixels must be a multiple of four. Then four neighbours are in one image,
// and are copied at once, where im2col.cuh copies each number of its own.
#pragma once

#include "product.cuh"

namespace pollen {

// Images has the sizes of x, or of dout: element (channel, image, pixel) is at (image channels +
// channel) pixels + pixel. Pixel n of all images is pixel n % pixels of image n / pixels.
struct Images {
  int images, channels, pixels;

  INLINE int count() const { return images * pixels; }
  // offset returns where pixel n of channel 0 is.
  INLINE int offset(unsigned n) const {
    unsigned image = n / (unsigned)pixels;
    return image * (channels - 1) * pixels + n;
  }
};

// PixelColumns is the operand whose side is the pixels and whose depth is the channels.
template <class T, class Stage>
struct PixelColumns {
  const T* data;
  Images of;
  int place, end;
  bool there;

  INLINE void begin(int x) {
    int n = x + Stage::chunk(Stage::thread(), 0).x;
    there = n < of.count();
    place = of.offset(n);
  }
  INLINE void advance(int, int to, int) { end = to; }
  INLINE bool inChunks() const { return true; }
  INLINE bool inDeepChunks() const { return false; }

  template <class, class F>
  INLINE void chunks(int k, int, F f) const {
    auto p = Stage::chunk(Stage::thread(), 0);
    const T* from = data + (place + (k + (int)p.d) * of.pixels);
    int left = there ? end - k - (int)p.d : 0;
#pragma unroll
    for (int i = 0; i < Stage::count / 4; i++) {
      p.acrossD = Stage::chunk(0, i).acrossD;
      f(i, p.offset(), from + p.acrossD * of.pixels, p.acrossD < left);
    }
  }
  template <class, class F>
  INLINE void deepChunks(int, F) const {}
  template <class, bool, class F>
  INLINE void words(int, int, F) const {}
};

// PixelDepths is the operand whose side is the channels and whose depth is the pixels.
template <class T>
struct PixelDepths {
  const T* data;
  Images of;
  int first, end;

  INLINE void begin(int x) { first = x; }
  INLINE void advance(int, int to, int) { end = to; }
  INLINE bool inChunks() const { return false; }
  INLINE bool inDeepChunks() const { return true; }

  template <class Stage, class F>
  INLINE void deepChunks(int k, F f) const {
    auto p = Stage::deepChunk(Stage::thread(), 0);
    int n = k + p.d, left = n < end ? of.channels - first - (int)p.x : 0;
    const T* from = data + (of.offset(n) + (first + (int)p.x) * of.pixels);
#pragma unroll
    for (int i = 0; i < Stage::count / 4; i++) {
      p.acrossX = Stage::deepChunk(0, i).acrossX;
      f(Stage::rawOffset(Stage::thread(), i), from + p.acrossX * of.pixels, p.acrossX < left);
    }
  }
  template <class, class F>
  INLINE void chunks(int, int, F) const {}

  template <class Stage, bool, class F>
  INLINE void words(int k, int, F f) const {
    auto p = Stage::alongDepth(Stage::thread(), 0);
    int n = k + p.d, left = n < end ? of.channels - first - (int)p.x : 0;
    const T* from = data + (of.offset(n) + (first + (int)p.x) * of.pixels);
#pragma unroll
    for (int i = 0; i < Stage::count; i++) {
      p.acrossX = Stage::alongDepth(0, i).acrossX;
      f(i, p.offset(), from + p.acrossX * of.pixels, p.acrossX < left);
    }
  }
};

template <class T, class Stage>
constexpr bool mayBeDeep<PixelColumns<T, Stage>> = true;
template <class T>
constexpr bool mayBeDeep<PixelDepths<T>> = true;

}  // namespace pollen

#define PIXELS int B, int C, int K, int pixels

// CONV1X1 defines three kernels, one per direction, that use the tile given after the name's ending
// and the type; the launch provides the tile's shared memory. If the grid splits the depth along y,
// the result is a workspace of partial sums.
#define CONV1X1(ending, T, ...)                                                                                                 \
  KERNEL(conv1x1_fwd_##ending, (__VA_ARGS__::threads), (__VA_ARGS__::blocks))                                                   \
  (Out<T> y, In<T> x, In<T> w, In<T> bias, PIXELS, int epilogue, int slices, int each) {                                        \
    DYNAMIC_SHARED(Line, memory);                                                                                               \
    Matrix<T> left = {w.at(), K, C, true};                                                                                      \
    PixelColumns<T, ColumnsOf<__VA_ARGS__>> right = {x.at(), {B, C, pixels}};                                                   \
    Output<T> to = {y.at(), bias.at(), K, B * pixels, pixels, pixels, K * pixels, epilogue};                                    \
    multiply<__VA_ARGS__>(left, right, to, Slices{C, slices, each}, (T*)memory);                                                \
  }                                                                                                                             \
  KERNEL(conv1x1_bwd_input_##ending, (__VA_ARGS__::threads), (__VA_ARGS__::blocks))                                             \
  (Out<T> dx, In<T> dout, In<T> w, In<T> mask, PIXELS, int epilogue, int slices, int each) {                                    \
    DYNAMIC_SHARED(Line, memory);                                                                                               \
    Matrix<T> left = {w.at(), C, K, false};                                                                                     \
    PixelColumns<T, ColumnsOf<__VA_ARGS__>> right = {dout.at(), {B, K, pixels}};                                                \
    Output<T> to = {dx.at(), mask.at(), C, B * pixels, pixels, pixels, C * pixels, epilogue};                                    \
    multiply<__VA_ARGS__>(left, right, to, Slices{K, slices, each}, (T*)memory);                                                \
  }                                                                                                                             \
  KERNEL(conv1x1_bwd_filter_##ending, (__VA_ARGS__::threads), (__VA_ARGS__::blocks))                                            \
  (Out<T> dw, In<T> dout, In<T> x, PIXELS, int slices, int each) {                                                              \
    DYNAMIC_SHARED(Line, memory);                                                                                               \
    PixelDepths<T> left = {dout.at(), {B, K, pixels}}, right = {x.at(), {B, C, pixels}};                                        \
    Output<T> to = {dw.at(), dw.at(), K, C, C, C, 0, 0};                                                                        \
    multiply<__VA_ARGS__>(left, right, to, Slices{B * pixels, slices, each}, (T*)memory);                                       \
  }
