// Tensors [B C ...] whose channels have a number each: n elements, width of them side by side in one channel of one image.
#pragma once
#include "quad.cuh"
#include "reduce.cuh"

namespace pollen {

// mapChannels sets y[i] to f(c, x[i]...) for all i below n, c being the channel of element i.
template <class T, class F, class... X>
INLINE void mapChannels(Out<T> y, int n, int channels, int width, F f, Buffer<X>... x) {
  quads(n, [&](int i, int count) INLINED {
    int channel = i / width % channels, at = i % width;
    Quad<T> q;
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

// Neighbours is how many elements a call adds up.
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

// channelSums adds f(i, neighbours) over the elements i of each channel, or over fours of them when they come so. With width 1 channels are
// neighbours, and a block makes 32 sums, else one.
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
