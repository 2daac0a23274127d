// Adds a product's slices in order, partial [slices, n] -> out [n], and applies the product's
// epilogue. With pooling, out and argmax are [n / 4]. Element i of the sum gets bias[i / inner %
// count], or the mask's element i.
#include "slices.cuh"

// sumAll adds all slices of the result and applies the epilogue; with pooling a thread has the four
// elements of a window.
template <class T>
INLINE void sumAll(Out<T> out, const T* partial, const T* bias, Out<unsigned char> argmax, int n, int slices, int inner, int count, int epilogue) {
  if (epilogue & withPool) {
    for (int i = first(); i < n / 4; i += step()) {
      auto sum = sumSlices<4>(partial + 4 * i, n, slices);
#pragma unroll
      for (int j = 0; j < 4; j++) sum.v[j] = finish(sum.v[j], epilogue, bias, 4 * i / inner % count);
      Pooled<T>{out, argmax}.store(i, sum.v, epilogue);
    }
    return;
  }
  for (int i = first(); i < n; i += step()) {
    T sum = sumSlices<1>(partial + i, n, slices).v[0];
    out.at()[i] = epilogue & withMask ? finishMatrix(sum, epilogue, bias, 0, i, n) : finish(sum, epilogue, bias, i / inner % count);
  }
}

// sumTaps adds partial [slices, planes, taps, width] to out [planes, channels, taps]: a filter's
// gradient with channels last, transposed through shared memory.
template <class T>
INLINE void sumTaps(T* out, const T* partial, int planes, int taps, int channels, int width, int slices) {
  constexpr int side = 32;
  SHARED(T, tile, side * (side + 1));
  int lane = threadIdx.x % side, warp = threadIdx.x / side, warps = blockDim.x / side, down = (taps + side - 1) / side, across = (channels + side - 1) / side;
  int tap = blockIdx.x % down * side, channel = blockIdx.x / down % across * side, plane = blockIdx.x / down / across;
  for (int i = warp; i < side && tap + i < taps; i += warps)
    tile[i * (side + 1) + lane] = sumSlices<1>(partial + (plane * taps + tap + i) * width + channel + lane, planes * taps * width, slices).v[0];
  barrier();
  for (int i = warp; i < side && channel + i < channels; i += warps)
    if (tap + lane < taps) out[(plane * channels + channel + i) * taps + tap + lane] = tile[lane * (side + 1) + i];
}

KERNEL(slices_nhwc_f32, 1024)(Out<float> out, In<float> partial, int planes, int taps, int channels, int width, int slices) {
  sumTaps(out.at(), partial.at(), planes, taps, channels, width, slices);
}

#define SLICES(suffix, T)                                                                                                    \
  KERNEL(slices_##suffix, 256)                                                                                               \
  (Out<T> out, In<T> partial, In<T> bias, Out<unsigned char> argmax, int n, int slices, int inner, int count, int epilogue) { \
    sumAll(out, partial.at(), bias.at(), argmax, n, slices, inner, count, epilogue);                                          \
  }

SLICES(f32, float)
SLICES(f64, double)
