// With e = exp(x) and n = e (e + 2), t = tanh(ln(1 + e)) is n / (n + 2); from x = 20 on it is 1.
#include "math.cuh"
#include "quad.cuh"

template <class T>
INLINE T exponential(T x) {
  return math::exp(x < 20 ? x : T(20));
}

// y = x t
template <class T>
INLINE T mish(T x) {
  T e = exponential(x), n = e * (e + 2);
  return x * (n / (n + 2));
}

// dy/dx = t + x (1 - t^2) e / (1 + e)
template <class T>
INLINE T slope(T x) {
  T e = exponential(x), n = e * (e + 2), t = n / (n + 2);
  return t + x * (4 * (n + 1) / ((n + 2) * (n + 2))) * (e / (1 + e));
}

#define MISH(T, suffix)                                                       \
  KERNEL(mish_fwd_##suffix, 256)(Out<T> y, In<T> x, int n) {                  \
    map(y, n, [](T x) INLINED -> T { return mish(x); }, x);                   \
  }                                                                           \
  KERNEL(mish_bwd_##suffix, 256)(Out<T> dx, In<T> dout, In<T> x, int n) {     \
    map(dx, n, [](T dout, T x) INLINED -> T { return dout * slope(x); }, dout, x); \
  }

MISH(float, f32)
MISH(double, f64)
