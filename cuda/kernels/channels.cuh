// Operations on tensors [B C ...] with one parameter per channel. n is the number of elements,
// width the number of contiguous elements of one channel of one image (H W).
#pragma once
#include "quad.cuh"
#include "reduce.cuh"

namespace pollen {

// mapChannels sets y[i] to f(c, x[i]...) for all i below n, where c is the channel of element i.
template <class T, class F, class... X>
INLINE void mapChannels(Out<T> y, int n, int channels, int width, F f, Buffer<X>... x) {
  quads(n, [&](int i, int count) INLINED {
    int channel = i / width % channels, at = i % width;
    Quad<T> q;
    // next keeps the channel of the running element, so that only a thread's first element needs
    // divisions.
    auto next = [&](auto... v) INLINED {
      T to = f(channel, v...);
      if (++at == width) {
        at = 0;
        channel = channel + 1 == channels ? 0 : channel + 1;
      }
      return to;
    };
    auto all = [&](auto... v) INLINED {
#pragma unroll
      for (int k = 0; k < 4; k++)
        if (k < count) q.v[k] = next(v.v[k]...);
    };
    all(load((const X*)x.at(), i, count)...);
    store(y.at(), i, count, q);
  });
}

// Neighbours<N> selects how many contiguous elements one call adds up.
template <int N>
struct Neighbours {};

template <class T>
INLINE double sumOf(const T* x, int i, Neighbours<1>) {
  return x[i];
}
template <class T>
INLINE double sumOf(const T* x, int i, Neighbours<4>) {
  Quad<T> q = *(const Quad<T>*)(x + i);
  return ((double)q.v[0] + q.v[1]) + ((double)q.v[2] + q.v[3]);
}

// channelSums sums f(i, neighbours) over the elements i of each channel, four at a time if width is
// a multiple of 4. With width 1 the channels are contiguous, and a block computes 32 sums;
// otherwise a block computes one.
template <class Y, class F>
INLINE void channelSums(Out<Y> y, int n, int channels, int width, F f) {
  if (width == 1) {
    columnSums(y, channels, n / channels, 1, [&](int channel, int image) { return f(image * channels + channel, Neighbours<1>()); });
  } else if (width % 4 == 0) {
    rowSums(y, channels, n / channels / 4, 1, [&](int channel, int t) {
      return f((t / (width / 4) * channels + channel) * width + t % (width / 4) * 4, Neighbours<4>());
    });
  } else {
    rowSums(y, channels, n / channels, 1,
            [&](int channel, int t) { return f((t / width * channels + channel) * width + t % width, Neighbours<1>()); });
  }
}

}  // namespace pollen
