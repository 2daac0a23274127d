// Normal and uniform noise, and dropout, which draws its mask itself. A thread has the four
// elements of one Philox counter.
#include "philox.cuh"

// i / 4 is the Philox counter's element part: a thread makes four normals of one counter, and their
// values do not depend on the grid.
template <class T>
INLINE void normalNoise(Out<T> y, Header header, int n, unsigned stream) {
  Address a = addressOf(header, stream);
  quads(n, [&](int i, int count) INLINED {
    Quad<float> z = normals(a, i / 4);
    store(y.at(), i, count, {{T(z.v[0]), T(z.v[1]), T(z.v[2]), T(z.v[3])}});
  });
}

template <class T>
INLINE void uniformNoise(Out<T> y, Header header, int n, unsigned stream) {
  Address a = addressOf(header, stream);
  quads(n, [&](int i, int count) INLINED {
    Quad<unsigned> w = philox(a, i / 4);
    store(y.at(), i, count, {{T(uniform(w.v[0])), T(uniform(w.v[1])), T(uniform(w.v[2])), T(uniform(w.v[3]))}});
  });
}

// dropout computes y = x scale where the element's uniform number is above the rate, else 0. The
// gradient needs no stored mask: it draws the same numbers.
template <class T>
INLINE void dropout(Out<T> y, In<T> x, Header header, int n, T rate, T scale, unsigned stream) {
  Address a = addressOf(header, stream);
  quads(n, [&](int i, int count) INLINED {
    Quad<unsigned> w = philox(a, i / 4);
    Quad<T> q = load(x.at(), i, count);
#pragma unroll
    for (int k = 0; k < 4; k++) q.v[k] = uniform(w.v[k]) > (float)rate ? q.v[k] * scale : T(0);
    store(y.at(), i, count, q);
  });
}

#define NOISE(T, suffix)                                                                                                            \
  KERNEL(noise_normal_fwd_##suffix, 256)(Out<T> y, Header header, int n, unsigned stream) { normalNoise(y, header, n, stream); }    \
  KERNEL(noise_uniform_fwd_##suffix, 256)(Out<T> y, Header header, int n, unsigned stream) { uniformNoise(y, header, n, stream); }  \
  KERNEL(dropout_fwd_##suffix, 256)(Out<T> y, In<T> x, Header header, int n, T rate, T scale, unsigned stream) {                    \
    dropout(y, x, header, n, rate, scale, stream);                                                                                  \
  }

NOISE(float, f32)
NOISE(double, f64)
