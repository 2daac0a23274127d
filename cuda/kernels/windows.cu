// The gradients of a convolution's bias, and of a filter with few taps, from pooling windows'
// gradients. The sums have a quarter of the terms, one per window: the other elements' gradients
// are 0.
#include "channels.cuh"
#include "math.cuh"
#include "im2col.cuh"
#include "windows.cuh"

template <class T>
INLINE double sumOf(Windows<T> from, int i, Neighbours<1>) {
  return from.counted(i);
}
template <class T>
INLINE double sumOf(Windows<T> from, int i, Neighbours<4>) {
  Quad<T> q = *(const Quad<T>*)(from.dout + i);
  auto argmax = *(const Vector<unsigned char, 4>*)(from.argmax + i);
#pragma unroll
  for (int k = 0; k < 4; k++)
    if (argmax.v[k] == noMaximum) q.v[k] = 0;
  return ((double)q.v[0] + q.v[1]) + ((double)q.v[2] + q.v[3]);
}

// biasOfWindows sums windows' gradients by channel; those that belong to no maximum count as 0.
template <class T, class Y>
INLINE void biasOfWindows(Out<Y> db, Windows<T> from, int n, int channels, int width) {
  channelSums(db, n, channels, width, [=](int i, auto neighbours) { return sumOf(from, i, neighbours); });
}

// windowsOf is the inverse of unpooling (pool.cu): from x, whose windows have at most one element
// that is not 0, to windows and argmaxes. Q is the number of windows per row.
//
// The gradient that unpooling would write has three zeros for each number. Working on windows
// avoids both the memory and the multiplications by zero.
template <class T>
INLINE void windowsOf(T* windows, unsigned char* argmax, const T* x, int n, int Q) {
  for (int i = first(); i < n; i += step()) {
    const Vector<T, 2>* from = (const Vector<T, 2>*)(x + 4 * i - 2 * (i % Q));
    Vector<T, 2> rows[2] = {from[0], from[Q]};
    T found = 0;
    int at = noMaximum;
#pragma unroll
    for (int j = 0; j < 4; j++)
      if (rows[j / 2].v[j % 2] != 0) found = rows[j / 2].v[j % 2], at = j;
    windows[i] = found;
    argmax[i] = at;
  }
}

// FilterOfWindows computes 32 filters, one per lane, by some taps of [C R S], for the images from
// blockIdx.y each on. One image at a time lies in shared memory, with its padding. Each warp has
// every fourth tile of 32 windows: first it loads their gradients, a lane per window, and computes
// where in the image their maxima lie; then each lane runs through its filter's windows. All lanes
// read the image near the same window.
template <class T, int taps>
struct FilterOfWindows {
  static constexpr int filters = 32, warps = 4, pitch = 33;

  Convolution c;
  Windows<T> from;
  const T* x;
  int each;

  INLINE int height() const { return (c.P - 1) * c.strideH + (c.R - 1) * c.dilationH + 1; }
  INLINE int width() const { return (c.Q - 1) * c.strideW + (c.S - 1) * c.dilationW + 1; }

  INLINE void load(T* image, int number) const {
    int height = this->height(), width = this->width();
    for (int i = threadIdx.x; i < c.C * height * width; i += blockDim.x) {
      int line = i / width, column = i - line * width - c.padW, channel = line / height, row = line - channel * height - c.padH;
      bool inside = (unsigned)row < (unsigned)c.H & (unsigned)column < (unsigned)c.W;
      image[i] = loadIf(inside, x + ((number * c.C + channel) * c.H + row) * c.W + column);
    }
  }

  // stage loads the gradients of window window for 32 filters, and the offsets of the maxima.
  INLINE void stage(T* gradients, int* places, int number, int filter, int window) const {
    int across = c.Q / 2, windows = c.P / 2 * across, i = window / across, lane = threadIdx.x % 32;
    int down = c.strideH * width(), at = 2 * (i * down + (window - i * across) * c.strideW);
#pragma unroll 4
    for (int f = 0; f < filters; f++) {
      bool is = (window < windows) & (filter + f < c.K);
      int place = (number * c.K + filter + f) * windows + window, argmax = is ? from.argmax[place] : noMaximum;
      T g = loadIf(argmax != noMaximum, from.dout + place);
      gradients[f * pitch + lane] = g;
      places[f * pitch + lane] = g == 0 ? 0 : at + argmax / 2 * down + argmax % 2 * c.strideW;
    }
  }

  // Stores the slice's partial sums and, if summed is set, the sums of its windows by filter,
  // [slices K].
  INLINE void operator()(T* partial, Out<T> sums, bool summed, T* memory) const {
    int windows = c.P / 2 * (c.Q / 2), all = c.C * c.taps(), groups = (c.K + filters - 1) / filters;
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32, first = blockIdx.x / groups * taps, filter = blockIdx.x % groups * filters;
    T *image = memory + warps * filters * pitch, *gradients = memory + warp * filters * pitch;
    int* places = (int*)(image + c.C * height() * width()) + warp * filters * pitch;
    T sum[taps], own = 0;
    int offset[taps];
#pragma unroll
    for (int j = 0; j < taps; j++) {
      int tap = minInt(first + j, all - 1), channel = tap / c.taps(), r = tap % c.taps() / c.S, s = tap % c.S;
      offset[j] = (channel * height() + r * c.dilationH) * width() + s * c.dilationW;
      sum[j] = 0;
    }
    // Per image: copy it to shared memory, then run through its windows in tiles of 32 per warp.
    for (int number = blockIdx.y * each; number < minInt((blockIdx.y + 1) * each, c.B); number++) {
      barrier();
      load(image, number);
      for (int tile = 0; tile < windows; tile += 32 * warps) {
        int begin = tile + 32 * warp, count = minInt(32, windows - begin);
        if (tile > 0) barrier();
        stage(gradients, places, number, filter, begin + lane);
        barrier();
        for (int k = 0; k < count; k++) {
          T g = gradients[lane * pitch + k];
          own += g;
          const T* near = image + places[lane * pitch + k];
#pragma unroll
          for (int j = 0; j < taps; j++) sum[j] = math::fma(g, near[offset[j]], sum[j]);
        }
      }
    }
    barrier();
#pragma unroll
    for (int j = 0; j < taps; j++) memory[(warp * taps + j) * filters + lane] = sum[j];
    barrier();
    for (int j = warp; j < minInt(taps, all - first); j += warps) {
      T total = memory[j * filters + lane];
#pragma unroll
      for (int w = 1; w < warps; w++) total += memory[(w * taps + j) * filters + lane];
      if (filter + lane < c.K) partial[(blockIdx.y * c.K + filter + lane) * all + first + j] = total;
    }
    if (!summed || first > 0) return;
    barrier();
    memory[warp * filters + lane] = own;
    barrier();
    if (warp > 0 || filter + lane >= c.K) return;
#pragma unroll
    for (int w = 1; w < warps; w++) own += memory[w * filters + lane];
    sums.at()[blockIdx.y * c.K + filter + lane] = own;
  }
};

#define WINDOWS_OF(suffix, T) \
  KERNEL(windows_of_##suffix, 256)(Out<T> windows, Out<unsigned char> argmax, In<T> x, int n, int Q) { windowsOf(windows.at(), argmax.at(), x.at(), n, Q); }

// BIAS defines the gradient of a bias from windows; n and width are the numbers of elements, in all
// and per plane, before pooling.
#define BIAS(suffix, T)                                                                                                                      \
  KERNEL(windows_bias_bwd_##suffix, 256)(Out<T> db, In<T> dout, In<unsigned char> argmax, int n, int channels, int width) {                   \
    biasOfWindows(db, Windows<T>{dout.at(), argmax.at()}, n / 4, channels, width / 4);                                                        \
  }                                                                                                                                          \
  KERNEL(windows_bias_bwd_partial_##suffix, 256)(Out<double> partial, In<T> dout, In<unsigned char> argmax, int n, int channels, int width) { \
    biasOfWindows(partial, Windows<T>{dout.at(), argmax.at()}, n / 4, channels, width / 4);                                                   \
  }

// FILTER defines the gradient of a filter, partial [slices, K C R S], with taps taps per block,
// and, if summed is set, of its bias, [slices, K]. The grid's blocks are taps by filters.
#define FILTER(suffix, T, taps)                                                                                                              \
  KERNEL(conv2d_windows_filter_##taps##_##suffix, 128)                                                                                       \
  (Out<T> partial, In<T> dout, In<unsigned char> argmax, In<T> x, Out<T> sums, int B, int C, int H, int W, int K, int R, int S, int P, int Q, \
   int strideH, int strideW, int padH, int padW, int dilationH, int dilationW, int summed, int each) {                                       \
    DYNAMIC_SHARED(Line, memory);                                                                                                            \
    Convolution c = {B, C, H, W, K, R, S, P, Q, strideH, strideW, padH, padW, dilationH, dilationW};                                         \
    FilterOfWindows<T, taps>{c, {dout.at(), argmax.at()}, x.at(), each}(partial.at(), sums, summed != 0, (T*)memory);                         \
  }

WINDOWS_OF(f32, float)
WINDOWS_OF(f64, double)
BIAS(f32, float)
BIAS(f64, double)
FILTER(f32, float, 9)
FILTER(f64, double, 9)
FILTER(f32, float, 27)
FILTER(f64, double, 27)
