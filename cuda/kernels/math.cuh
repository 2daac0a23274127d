// Elementary functions in float and double, made of IEEE operations only, without the device's math
// library: the same bits on every machine.
//
// Each function reduces its argument to a small range and sums a Taylor series there. At an
// infinity a function returns its limit; NaN stays NaN, and arguments outside the domain give NaN.
// The errors in the comments are bounds in units in the last place (ulp), which cuda/math_test.go
// checks.
#pragma once
#include "pollen.cuh"

namespace pollen {
namespace math {

// Format has the constants of a floating-point format, and how many terms the series need for its
// precision. Beyond the bounds of exp and expm1 the result is an infinity, 0 or -1.
template <class T>
struct Format;

template <>
struct Format<float> {
  using Bits = unsigned;
  static constexpr int mantissa = 23, bias = 127;
  static constexpr int exponentialTerms = 8;  // r^9/9! < 2^-28 r for r = ln(2)/2
  static constexpr int logarithmTerms = 5;    // s^12/13 < 2^-34 for s = (sqrt 2 - 1)/(sqrt 2 + 1)
  static constexpr float expOverflow = 88.8f, expUnderflow = -104.0f, expm1Underflow = -18.0f;
  static constexpr float log2e = 0x1.715476p+0f, ln2High = 0x1.62ep-1f, ln2Low = 0x1.0bfbe8p-15f;
};

template <>
struct Format<double> {
  using Bits = unsigned long long;
  static constexpr int mantissa = 52, bias = 1023;
  static constexpr int exponentialTerms = 14;  // r^15/15! < 2^-61 r
  static constexpr int logarithmTerms = 10;    // s^22/23 < 2^-60
  static constexpr double expOverflow = 709.9, expUnderflow = -745.2, expm1Underflow = -38.0;
  static constexpr double log2e = 0x1.71547652b82fep+0, ln2High = 0x1.62e42ffp-1, ln2Low = -0x1.718432a1b0e26p-35;
};

constexpr double pi = 3.14159265358979323846, ln2 = 0.693147180559945309417, halfLogTwoPi = 0.91893853320467274178;

INLINE unsigned bitsOf(float x) { return __builtin_bit_cast(unsigned, x); }
INLINE unsigned long long bitsOf(double x) { return __builtin_bit_cast(unsigned long long, x); }
INLINE float fromBits(unsigned bits) { return __builtin_bit_cast(float, bits); }
INLINE double fromBits(unsigned long long bits) { return __builtin_bit_cast(double, bits); }

INLINE float fma(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
INLINE double fma(double a, double b, double c) { return __builtin_fma(a, b, c); }
INLINE float sqrt(float x) { return __builtin_sqrtf(x); }
INLINE double sqrt(double x) { return __builtin_sqrt(x); }
INLINE unsigned max(unsigned a, unsigned b) { return a > b ? a : b; }
INLINE float nearest(float x) { return __builtin_rintf(x); }
INLINE double nearest(double x) { return __builtin_rint(x); }
INLINE float abs(float x) { return __builtin_fabsf(x); }
INLINE double abs(double x) { return __builtin_fabs(x); }

// Exact and Fast are square root and reciprocal, correctly rounded. Exact takes any number. Fast
// takes numbers from 2^-97 to 2^97: it consists of the instructions that NVIDIA's assembler uses
// for such numbers in Exact's functions, without the branches that first check the range.
struct Exact {
  template <class T>
  static INLINE T sqrt(T x) {
    return math::sqrt(x);
  }
  template <class T>
  static INLINE T reciprocal(T x) {
    return 1 / x;
  }
};
struct Fast {
  static INLINE float sqrt(float x) {
    float y = rsqrtApprox(x), root = x * y;
    return fma(fma(-root, root, x), 0.5f * y, root);
  }
  static INLINE float reciprocal(float x) {
    float y = reciprocalApprox(x);
    return fma(fma(-x, y, 1.0f), y, y);
  }
};

// inFastRange reports whether all of four positive numbers are from 2^-96 to 2^96. Comparing the
// bits as integers needs one comparison for all four.
INLINE bool inFastRange(float a, float b, float c, float d) {
  constexpr unsigned minBits = (127 - 96) << 23, maxBits = (127 + 96) << 23;
  unsigned ab = max(bitsOf(a) - minBits, bitsOf(b) - minBits), cd = max(bitsOf(c) - minBits, bitsOf(d) - minBits);
  return max(ab, cd) <= maxBits - minBits;
}

template <class T>
INLINE T infinity() {
  using F = Format<T>;
  return fromBits((typename F::Bits)(2 * F::bias + 1) << F::mantissa);
}

template <class T>
INLINE T nan() {
  return infinity<T>() - infinity<T>();
}

// copySign returns |x| with the sign of y.
template <class T>
INLINE T copySign(T x, T y) {
  constexpr auto sign = (typename Format<T>::Bits)1 << (8 * sizeof(T) - 1);
  return fromBits((bitsOf(x) & ~sign) | (bitsOf(y) & sign));
}

// maximum and minimum return NaN if either argument is NaN.
template <class T>
INLINE T maximum(T a, T b) {
  return a != a || a > b ? a : b;
}
template <class T>
INLINE T minimum(T a, T b) {
  return a != a || a < b ? a : b;
}

// powerOfTwo returns 2^n, which must be a normal number.
template <class T>
INLINE T powerOfTwo(int n) {
  using F = Format<T>;
  return fromBits((typename F::Bits)(n + F::bias) << F::mantissa);
}

// scaleByPowerOfTwo returns x 2^n, for n from twice the smallest to twice the largest exponent. It
// multiplies by two powers, since 2^n need not be a number.
template <class T>
INLINE T scaleByPowerOfTwo(T x, int n) {
  int half = n / 2;
  return x * powerOfTwo<T>(half) * powerOfTwo<T>(n - half);
}

// expm1Series returns e^r - 1 for |r| <= ln(2)/2, by Taylor: r + r^2 (1/2! + r/3! + ...).
template <class T>
INLINE T expm1Series(T r) {
  constexpr double factorials[15] = {1,     1,      2,       6,        24,        120,        720,         5040, 40320,
                                     362880, 3628800, 39916800, 479001600, 6227020800., 87178291200.};
  constexpr int terms = Format<T>::exponentialTerms;
  T sum = T(1 / factorials[terms]);
#pragma unroll
  for (int k = terms - 1; k >= 2; k--) sum = fma(sum, r, T(1 / factorials[k]));
  return fma(r * r, sum, r);
}

// reduceArgument returns r = x - n ln 2 for the nearest integer n. ln 2 is the sum of two
// constants, of which the first is short, so that its product with n is exact.
//
// e^x = 2^n e^r, where r is so small that a short series suffices and 2^n only changes the
// exponent. The subtraction x - n ln 2 cancels leading digits, so ln 2 must have more digits than
// a number holds.
template <class T>
INLINE T reduceArgument(T x, int* n) {
  using F = Format<T>;
  T whole = nearest(x * F::log2e);
  *n = (int)whole;
  return fma(-whole, F::ln2Low, fma(-whole, F::ln2High, x));
}

// exp is e^x: 1 ulp, also for subnormal results.
template <class T>
INLINE T exp(T x) {
  using F = Format<T>;
  if (!(x < F::expOverflow)) return x != x ? x : infinity<T>();
  if (x < F::expUnderflow) return 0;
  int n;
  T r = reduceArgument(x, &n);
  return scaleByPowerOfTwo(1 + expm1Series(r), n);
}

// expm1 is e^x - 1: 2 ulp.
template <class T>
INLINE T expm1(T x) {
  using F = Format<T>;
  if (!(x < F::expOverflow)) return x != x ? x : infinity<T>();
  if (x < F::expm1Underflow) return -1;
  int n;
  T y = expm1Series(reduceArgument(x, &n));
  if (n == 0) return y;
  if (n > F::mantissa + 2) return scaleByPowerOfTwo(1 + y, n);
  T scale = powerOfTwo<T>(n);
  return fma(scale, y, scale - 1);
}

// logSeries returns n ln 2 + ln(1 + f) + rest, for f from sqrt(1/2) - 1 to sqrt(2) - 1, an integer
// n and a rounding error rest:
//
//	ln(1 + f) = 2 s + 2 s^3/3 + 2 s^5/5 + ..., s = f/(2 + f),  where 2 s = f - s f
template <class T>
INLINE T logSeries(T f, int n, T rest) {
  using F = Format<T>;
  T s = f / (2 + f), square = s * s, sum = 0;
#pragma unroll
  for (int k = F::logarithmTerms; k >= 1; k--) sum = fma(sum, square, T(2) / (2 * k + 1));
  T small = fma(-s, f - square * sum, rest);
  if (n == 0) return f + small;
  T whole = T(n);
  return fma(whole, F::ln2High, f + fma(whole, F::ln2Low, small));
}

// splitExponent returns f and n with x = 2^n (1 + f), for a positive finite x, with f in
// logSeries's range.
template <class T>
INLINE T splitExponent(T x, int* n) {
  using F = Format<T>;
  constexpr auto one = (typename F::Bits)1 << F::mantissa;
  auto bits = bitsOf(x);
  *n = 0;
  // A subnormal number is first scaled into the normal range.
  if (bits < one) {  // subnormal
    bits = bitsOf(x * powerOfTwo<T>(F::mantissa + 1));
    *n = -(F::mantissa + 1);
  }
  *n += (int)(bits >> F::mantissa) - F::bias;
  T m = fromBits((bits & (one - 1)) | bitsOf(T(1)));
  if (m > T(1.4142135623730951)) {
    m *= T(0.5);
    *n += 1;
  }
  return m - 1;
}

// log is ln x: 1 ulp. It is -Inf at 0, and NaN for negative x.
template <class T>
INLINE T log(T x) {
  if (!(x > 0)) return x == 0 ? -infinity<T>() : nan<T>();
  if (!(x < infinity<T>())) return x;
  int n;
  T f = splitExponent(x, &n);
  return logSeries(f, n, T(0));
}

// log1p is ln(1 + x): 2 ulp. It is -Inf at -1, and NaN below.
template <class T>
INLINE T log1p(T x) {
  if (!(x > -1)) return x == -1 ? -infinity<T>() : nan<T>();
  if (!(x < infinity<T>())) return x;
  if (x > T(-0.29) && x < T(0.41)) return logSeries(x, 0, T(0));
  // lost is what rounding 1 + x has lost, by Fast2Sum; it enters as a first-order correction.
  T u = 1 + x;
  T lost = x < 1 ? x - (u - 1) : 1 - (u - x);
  int n;
  T f = splitExponent(u, &n);
  return logSeries(f, n, lost / u);
}

// tanh is -e/(2 + e) with e = e^(-2|x|) - 1, with the sign of x: 3 ulp.
template <class T>
INLINE T tanh(T x) {
  // expm1 keeps the digits of tanh near 0; the sign of x is put back at the end.
  T e = expm1(-2 * abs(x));
  return copySign(e / (2 + e), x);
}

// sigmoid is 1/(1 + e^-x): 1 ulp. The rounding errors of e^-x and of the sum are compensated,
// because callers often need 1 - y where y is near 1.
template <class T>
INLINE T sigmoid(T x) {
  using F = Format<T>;
  if (!(-x < F::expOverflow)) return x != x ? x : T(0);
  if (-x < F::expUnderflow) return 1;
  int n;
  T p = expm1Series(reduceArgument(-x, &n)), high = 1 + p, low = p - (high - 1);
  T e = scaleByPowerOfTwo(high, n), s = 1 + e, lost = (e < 1 ? e - (s - 1) : 1 - (s - e)) + scaleByPowerOfTwo(low, n);
  T y = 1 / s;
  return fma(y, fma(-y, s, T(1)) - y * lost, y);
}

// siluSlope is s (1 + x (1 - s)) with s = sigmoid(x), the derivative of x sigmoid(x).
template <class T>
INLINE T siluSlope(T x) {
  T s = sigmoid(x);
  return s * (1 + x * (1 - s));
}

// hardSwishFactor is x/6 + 1/2, at least 0 and at most 1. NaN stays NaN.
template <class T>
INLINE T hardSwishFactor(T x) {
  T t = x / 6 + T(0.5);
  return t < 0 ? T(0) : t > 1 ? T(1) : t;
}

// hardSwishSlope is the derivative of x hardSwishFactor(x): 0 and 1 where the factor is 0 and 1.
template <class T>
INLINE T hardSwishSlope(T x) {
  T t = hardSwishFactor(x);
  return t > 0 && t < 1 ? t + x / 6 : t;
}

// softplus is ln(1 + e^x): 3 ulp.
template <class T>
INLINE T softplus(T x) {
  return (x <= 0 ? T(0) : x) + log1p(exp(-abs(x)));
}

}  // namespace math
}  // namespace pollen
