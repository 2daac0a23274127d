// Elementwise functions: y = f(x), and dx = dout times the derivative, as a function of y or of x,
// whichever the table's third column names. They compute in the program's float, except those
// of WIDE_CURVE, which compute in double.
#include "quad.cuh"
#include "special.cuh"

#define VALUE(map, stem, T, suffix, expression) \
  KERNEL(stem##_fwd_##suffix, 256)(Out<T> y, In<T> x, int n) { map(y, n, [](T x) INLINED -> T { return expression; }, x); }
#define SLOPE(map, stem, T, suffix, of, expression)                                           \
  KERNEL(stem##_bwd_##suffix, 256, 4)(Out<T> dx, In<T> dout, In<T> of, int n) {               \
    map(dx, n, [](T dout, T of) INLINED -> T { return dout * (expression); }, dout, of);      \
  }
#define CURVE(stem, T, suffix, value, of, slope) VALUE(map, stem, T, suffix, value) SLOPE(map, stem, T, suffix, of, slope)
#define WIDE_CURVE(stem, T, suffix, value, slope) VALUE(mapEach, stem, T, suffix, value) SLOPE(mapEach, stem, T, suffix, x, slope)

// A row: name, float type, symbol's ending, y, what the derivative reads, and the derivative.
#define CURVES(T, suffix)                                                                                              \
  CURVE(tanh, T, suffix, math::tanh(x), y, (1 - y) * (1 + y))                                                          \
  CURVE(sigmoid, T, suffix, math::sigmoid(x), y, y * (1 - y))                                                          \
  CURVE(softplus, T, suffix, math::softplus(x), y, -math::expm1(-y))                                                   \
  CURVE(softplus_inverse, T, suffix, x + math::log(-math::expm1(-x)), x, -1 / math::expm1(-x))                         \
  CURVE(silu, T, suffix, x * math::sigmoid(x), x, math::siluSlope(x))                                                        \
  CURVE(hard_swish, T, suffix, x * math::hardSwishFactor(x), x, math::hardSwishSlope(x))                               \
  CURVE(exp, T, suffix, math::exp(x), y, y)                                                                            \
  CURVE(log, T, suffix, math::log(x), x, 1 / x)                                                                        \
  CURVE(log1p, T, suffix, math::log1p(x), x, 1 / (1 + x))                                                              \
  CURVE(sqrt, T, suffix, math::sqrt(x), y, 1 / (2 * y))                                                                \
  CURVE(squared, T, suffix, x * x, x, 2 * x)                                                                           \
  CURVE(abs, T, suffix, math::abs(x), x, x == 0 ? T(0) : math::copySign(T(1), x))                                      \
  CURVE(softsign, T, suffix, x / (1 + math::abs(x)), y, (1 - math::abs(y)) * (1 - math::abs(y)))                       \
  WIDE_CURVE(lgamma, T, suffix, T(math::lgamma(x)), T(math::digamma(x)))                                              \
  WIDE_CURVE(student_t_constant, T, suffix, T(math::studentTConstant(x)), T(math::studentTSlope(x)))                  \
  WIDE_CURVE(erf, T, suffix, T(math::erf(double(x))), T(math::erfSlope(x)))                                                   \
  CURVE(gelu, T, suffix, x * math::normal(x), x, math::normal(x) + x * math::normalDensity(x))                        \
  VALUE(map, negate, T, suffix, -x)                                                                                    \
  VALUE(map, whole, T, suffix, x == math::nearest(x) ? x : math::nan<T>())

CURVES(float, f32)
CURVES(double, f64)

// ELU: y = x where x > 0, else alpha (e^x - 1); its derivative is 1 or y + alpha.
template <class T>
INLINE void eluForward(Out<T> y, In<T> x, int n, T alpha) {
  map(y, n, [=](T x) { return x > 0 ? x : alpha * math::expm1(x); }, x);
}
template <class T>
INLINE void eluBackward(Out<T> dx, In<T> dout, In<T> y, int n, T alpha) {
  map(dx, n, [=](T dout, T y) { return dout * (y > 0 ? T(1) : y + alpha); }, dout, y);
}

// factor x + offset
template <class T>
INLINE void scale(Out<T> y, In<T> x, int n, T factor, T offset) {
  map(y, n, [=](T x) { return factor * x + offset; }, x);
}

// x if low <= x <= high, else NaN
template <class T>
INLINE void restrict(Out<T> y, In<T> x, int n, T low, T high) {
  map(y, n, [=](T x) { return low <= x && x <= high ? x : math::nan<T>(); }, x);
}

// min(max(x, low), high); NaN stays NaN. Its derivative is 1 where low < y < high.
template <class T>
INLINE void clipForward(Out<T> y, In<T> x, int n, T low, T high) {
  map(y, n, [=](T x) { return x < low ? low : x > high ? high : x; }, x);
}
template <class T>
INLINE void clipBackward(Out<T> dx, In<T> dout, In<T> y, int n, T low, T high) {
  map(dx, n, [=](T dout, T y) { return y > low && y < high ? dout : T(0); }, dout, y);
}

#define CURVES_WITH_CONSTANTS(T, suffix)                                                                                              \
  KERNEL(elu_fwd_##suffix, 256)(Out<T> y, In<T> x, int n, T alpha) { eluForward(y, x, n, alpha); }                                    \
  KERNEL(elu_bwd_##suffix, 256)(Out<T> dx, In<T> dout, In<T> y, int n, T alpha) { eluBackward(dx, dout, y, n, alpha); }               \
  KERNEL(scale_fwd_##suffix, 256)(Out<T> y, In<T> x, int n, T factor, T offset) { scale(y, x, n, factor, offset); }                   \
  KERNEL(restrict_fwd_##suffix, 256)(Out<T> y, In<T> x, int n, T low, T high) { restrict(y, x, n, low, high); }                   \
  KERNEL(clip_fwd_##suffix, 256)(Out<T> y, In<T> x, int n, T low, T high) { clipForward(y, x, n, low, high); }                        \
  KERNEL(clip_bwd_##suffix, 256)(Out<T> dx, In<T> dout, In<T> y, int n, T low, T high) { clipBackward(dx, dout, y, n, low, high); }

CURVES_WITH_CONSTANTS(float, f32)
CURVES_WITH_CONSTANTS(double, f64)
