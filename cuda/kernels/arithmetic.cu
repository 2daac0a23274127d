// The four operations and ln(e^a + e^b), elementwise; with NumPy's broadcasting where the operands' shapes differ.
#include "math.cuh"
#include "quad.cuh"
#include "walk.cuh"

struct Add {
  template <class T>
  INLINE T operator()(T a, T b) const {
    return a + b;
  }
};

struct Subtract {
  template <class T>
  INLINE T operator()(T a, T b) const {
    return a - b;
  }
};

struct Multiply {
  template <class T>
  INLINE T operator()(T a, T b) const {
    return a * b;
  }
};

struct Divide {
  template <class T>
  INLINE T operator()(T a, T b) const {
    return a / b;
  }
};

// max(a, b) + ln(1 + e^-|a-b|). Two infinities have no difference.
struct LogAddExp {
  template <class T>
  INLINE T operator()(T a, T b) const {
    T larger = math::maximum(a, b), smaller = math::minimum(a, b);
    if (larger == smaller) return larger + T(math::ln2);
    return larger + math::log1p(math::exp(smaller - larger));
  }
};

template <class F, class T>
INLINE void broadcast(Out<T> y, In<T> a, In<T> b, int n, const Walk<6>& ofA, const Walk<6>& ofB) {
  for (int i = first(); i < n; i += step()) y.at()[i] = F()(a.at()[ofA.at(i)], b.at()[ofB.at(i)]);
}

#define ARITHMETIC(stem, F, T, suffix)                                                                                              \
  KERNEL(stem##_fwd_##suffix, 256)(Out<T> y, In<T> a, In<T> b, int n) { map(y, n, F(), a, b); }                                     \
  KERNEL(stem##_broadcast_fwd_##suffix, 256)(Out<T> y, In<T> a, In<T> b, int n, WALK6(a), WALK6(b)) {                               \
    broadcast<F>(y, a, b, n, WALK6_OF(a), WALK6_OF(b));                                                                             \
  }

#define ARITHMETICS(T, suffix)              \
  ARITHMETIC(add, Add, T, suffix)           \
  ARITHMETIC(subtract, Subtract, T, suffix) \
  ARITHMETIC(multiply, Multiply, T, suffix) \
  ARITHMETIC(divide, Divide, T, suffix)     \
  ARITHMETIC(logaddexp, LogAddExp, T, suffix)

ARITHMETICS(float, f32)
ARITHMETICS(double, f64)
