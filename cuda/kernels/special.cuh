// The log-gamma and error functions and their derivatives, in double only.
// Errors are given as in math.cuh.
#pragma once
#include "math.cuh"

namespace pollen {
namespace math {

// sinePi and cosinePi return sin(pi r) and cos(pi r) for |r| <= 1/2, by Taylor series.
INLINE double sinePi(double r) {
  double z = pi * r, square = z * z, sum = 1;
#pragma unroll
  for (int k = 11; k >= 1; k--) sum = 1 - sum * square / (2 * k * (2 * k + 1));
  return z * sum;
}
INLINE double cosinePi(double r) {
  double z = pi * r, square = z * z, sum = 1;
#pragma unroll
  for (int k = 12; k >= 1; k--) sum = 1 - sum * square / (2 * k * (2 * k - 1));
  return sum;
}

// lgammaAtTwo returns ln Gamma(2 + d) for |d| <= 1/2, by its Taylor series d (1 - gamma) + sum over
// k >= 2 of (zeta(k) - 1) (-d)^k / k.
INLINE double lgammaAtTwo(double d) {
  constexpr double coefficients[26] = {
      0.42278433509846713939,    0.32246703342411321824,    -0.067352301053198095133,   0.020580808427784547879,   -0.0073855510286739852663,
      0.0028905103307415232858,  -0.0011927539117032609771, 0.00050966952474304242234,  -0.00022315475845357937976, 0.000099457512781808533715,
      -0.0000449262367381331417, 0.000020507212775670691553, -9.439488275268395904e-6,  4.3748667899074878042e-6,  -2.0392157538013662368e-6,
      9.5514121304074198329e-7,  -4.4924691987645660433e-7, 2.1207184805554665869e-7,   -1.0043224823968099609e-7, 4.7698101693639805658e-8,
      -2.271109460894316491e-8,  1.0838659214896954091e-8,  -5.1834750419700466551e-9,  2.4836745438024783172e-9,  -1.1921401405860912074e-9,
      5.7313672416788620133e-10,
  };
  double sum = 0;
#pragma unroll
  for (int k = 25; k >= 0; k--) sum = fma(sum, d, coefficients[k]);
  return d * sum;
}

// lgammaPositive returns ln Gamma(x) for x > 0. From 8 on it uses Stirling's series, (x - 1/2) (ln
// x - 1) + (ln(2 pi) - 1)/2 + 1/(12 x) - ...
//
// No series covers all x. Near 1 and 2, where ln Gamma has zeros, a Taylor series around 2 keeps
// the relative error small; above 8 Stirling's series converges fast; the recurrence connects
// them.
INLINE double lgammaPositive(double x) {
  if (x < 0.5) return lgammaAtTwo(x) - log(x * (1 + x));
  if (x < 1.5) return lgammaAtTwo(x - 1) - log1p(x - 1);
  if (x < 8) {
    double product = 1;
    for (; x > 2.5; product *= x) x -= 1;
    return lgammaAtTwo(x - 2) + log(product);
  }
  double r = 1 / x, square = r * r;
  double sum = 1.0 / 12 -
               square * (1.0 / 360 - square * (1.0 / 1260 - square * (1.0 / 1680 - square * (1.0 / 1188 - square * (691.0 / 360360 - square / 156)))));
  return (x - 0.5) * (log(x) - 1) + ((halfLogTwoPi - 0.5) + r * sum);
}

// lgamma returns ln |Gamma(x)|: 8 ulp above 0; below 0, where it has zeros, the error is 1e-15 of
// its terms. It is +Inf at 0 and the negative integers, and -Inf at -Inf. Negative arguments use
// the reflection Gamma(x) Gamma(-x) = -pi/(x sin(pi x)).
INLINE double lgamma(double x) {
  if (x != x || abs(x) == infinity<double>()) return x;
  if (x > 0) return lgammaPositive(x);
  double sine = abs(sinePi(x - nearest(x)));
  if (sine == 0) return infinity<double>();
  if (x > -0x1p-70) return -log(-x);
  return log(pi / (-x * sine)) - lgammaPositive(-x);
}

// digamma is lgamma's derivative: the asymptotic series at x - 1/2 for x >= 7 (DLMF 5.11.2), the
// recurrence for smaller x, and reflection below 0. The truncated series is off by 5e-11, as on the
// host. It is NaN at the negative integers.
INLINE double digamma(double x) {
  if (x != x || x == infinity<double>()) return x;
  if (x == -infinity<double>()) return nan<double>();
  if (x == 0) return copySign(infinity<double>(), -x);
  double y = 0;
  if (x < 0) {
    double r = x - nearest(x);
    if (r == 0) return nan<double>();
    y = -pi * cosinePi(r) / sinePi(r);
    x = 1 - x;
  }
  for (; x < 7; x += 1) y -= 1 / x;
  x -= 0.5;
  double r = 1 / x, r2 = r * r, r4 = r2 * r2;
  return y + (log(x) + 1.0 / 24 * r2 - 7.0 / 960 * r4 + 31.0 / 8064 * r4 * r2 - 127.0 / 30720 * r4 * r4);
}

// studentTConstant returns ln Gamma((x+1)/2) - ln Gamma(x/2) - ln(pi x)/2; from 50 on it uses the
// same series as graph/op.
INLINE double studentTConstant(double x) {
  if (x >= 50) {
    double r = 1 / (x * x);
    return -halfLogTwoPi - (1.0 / 4 - (1.0 / 24 - (1.0 / 20 - 17.0 / 112 * r) * r) * r) / x;
  }
  return lgammaPositive((x + 1) / 2) - lgammaPositive(x / 2) - 0.5 * log(pi * x);
}

INLINE double studentTSlope(double x) {
  if (x >= 50) {
    double r = 1 / (x * x);
    return (1.0 / 4 - (1.0 / 8 - (1.0 / 4 - 17.0 / 16 * r) * r) * r) * r;
  }
  return 0.5 * (digamma((x + 1) / 2) - digamma(x / 2) - 1 / x);
}

// erf returns the error function, to 4 ulp: below 2.5 by its Taylor series 2/sqrt(pi) e^(-x^2) sum of
// 2^n x^(2n+1) / (1 3 ... (2n+1)), whose terms are all of one sign (DLMF 7.6.2); above by 1 - erfc,
// with the continued fraction of erfc (DLMF 7.9.1), evaluated from its 30th term.
INLINE double erf(double x) {
  if (x != x) return x;
  constexpr double rootOfPi = 1.7724538509055160273;
  double size = abs(x), square = size * size;
  if (size > 6) return copySign(1.0, x);
  if (size < 2.5) {
    double term = size, sum = size;
    for (double odd = 3; term > 0x1p-54 * sum; odd += 2) {
      term *= 2 * square / odd;
      sum += term;
    }
    return copySign(2 / rootOfPi * exp(-square) * sum, x);
  }
  double fraction = size;
  for (double half = 15; half > 0; half -= 0.5) fraction = size + half / fraction;
  return copySign(1 - exp(-square) / (rootOfPi * fraction), x);
}
// In float: x P(x^2)/Q(x^2) between -4 and 4, beyond which it is 1. P and Q, of degree 5, minimise the
// largest relative error, 2.5e-8; package tensor/kernel has the same coefficients.
INLINE float erf(float x) {
  x = x > 4 ? 4 : x < -4 ? -4 : x;
  constexpr float numerator[] = {2.8456392236565775e-4f, 3.883281007165671e-3f, 5.3101557704237655e-2f, 0.19354366821690944f, 1.128379139336981f};
  constexpr float denominator[] = {1.1855546480339194e-3f, 1.5207128486621715e-2f, 0.1153494194442518f, 0.5048561662248351f, 1};
  float t = x * x, above = 1.9867869411993735e-6f, below = 3.742011639863691e-5f;
  for (float term : numerator) above = above * t + term;
  for (float term : denominator) below = below * t + term;
  float y = above * x / below;
  return y > 1 ? 1 : y < -1 ? -1 : y;
}

// normal and normalDensity are the distribution function and the density of the normal distribution.
template <class T>
INLINE T normal(T x) {
  return T(0.5) * (1 + erf(x * T(0.70710678118654752440)));
}
template <class T>
INLINE T normalDensity(T x) {
  return T(0.39894228040143267794) * exp(T(-0.5) * x * x);
}

INLINE double erfSlope(double x) { return 1.1283791670955125739 * exp(-x * x); }

}  // namespace math
}  // namespace pollen
