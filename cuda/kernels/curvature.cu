// Curvature of a loss along a direction z, by central differences: displaced parameters y = w +
// distance z, and then y = rest + z (up - down) scale from the gradients on both sides. The
// elements of z are random signs of a stream, or z is an axis.
#include "philox.cuh"

// Direction is langevin.direction: random signs if stream is not 0, else the axis of element (0
// everywhere if there is no such element).
struct Direction {
  Address address;
  unsigned stream;
  int element;

  // signs returns +1 or -1 from the top bit of a random word, or 1 for the axis's element and 0
  // elsewhere.
  INLINE Quad<int> signs(int i) const {
    Quad<int> z;
    Quad<unsigned> w = stream != 0 ? philox(address, i / 4) : Quad<unsigned>{};
#pragma unroll
    for (int k = 0; k < 4; k++) z.v[k] = stream != 0 ? 1 - 2 * (int)(w.v[k] >> 31) : element == i + k;
    return z;
  }
};

template <class T>
INLINE void displaced(Out<T> y, In<T> w, int n, T distance, const Direction& along) {
  quads(n, [&](int i, int count) INLINED {
    Quad<T> q = load(w.at(), i, count);
    Quad<int> z = along.signs(i);
#pragma unroll
    for (int k = 0; k < 4; k++) q.v[k] += distance * T(z.v[k]);
    store(y.at(), i, count, q);
  });
}

// curvature computes z (g(w + distance z) - g(w - distance z)) scale, whose expectation over random
// signs z is the Hessian's diagonal (Hutchinson).
template <class T>
INLINE void curvature(Out<T> y, In<T> up, In<T> down, const T* rest, int n, T scale, const Direction& along) {
  quads(n, [&](int i, int count) INLINED {
    Quad<T> u = load(up.at(), i, count), d = load(down.at(), i, count);
    Quad<int> z = along.signs(i);
#pragma unroll
    for (int k = 0; k < 4; k++) u.v[k] = T(z.v[k]) * ((u.v[k] - d.v[k]) * scale);
    if (rest) {
      Quad<T> r = load(rest, i, count);
#pragma unroll
      for (int k = 0; k < 4; k++) u.v[k] += r.v[k];
    }
    store(y.at(), i, count, u);
  });
}

#define DIRECTION (Direction{addressOf(header, stream), stream, element})

#define CURVATURE(T, suffix)                                                                                                       \
  KERNEL(displaced_fwd_##suffix, 256)(Out<T> y, In<T> w, Header header, int n, T distance, unsigned stream, int element) {         \
    displaced(y, w, n, distance, DIRECTION);                                                                                       \
  }                                                                                                                                \
  KERNEL(curvature_fwd_##suffix, 256)                                                                                              \
  (Out<T> y, In<T> up, In<T> down, Header header, int n, T scale, unsigned stream, int element) {                                  \
    curvature(y, up, down, (const T*)nullptr, n, scale, DIRECTION);                                                                \
  }                                                                                                                                \
  KERNEL(curvature_rest_fwd_##suffix, 256)                                                                                         \
  (Out<T> y, In<T> up, In<T> down, Header header, In<T> rest, int n, T scale, unsigned stream, int element) {                      \
    curvature(y, up, down, (const T*)rest.at(), n, scale, DIRECTION);                                                              \
  }

CURVATURE(float, f32)
CURVATURE(double, f64)
