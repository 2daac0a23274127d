// What PTX instructions compute, according to the PTX ISA. Nothing here depends on the kernels'
// sources or on shim.h.
#pragma once

#include "types.h"

namespace pollen {
namespace ptx {

constexpr bool isNaN(F32 v) { return v != v; }
constexpr bool isNaN(F64 v) { return v != v; }

// canonical returns v, or the one NaN that a GPU's arithmetic produces.
static inline F32 canonical(F32 v) { return isNaN(v) ? number((U32)0x7fffffff) : v; }
static inline F64 canonical(F64 v) { return isNaN(v) ? number((U64)0xfff8000000000000ull) : v; }

// smaller returns the smaller number, where -0 is below 0; if one is NaN, the other.
template <class T>
static inline T smaller(T a, T b) {
  return isNaN(a) ? b : isNaN(b) ? a : a == b ? (__builtin_signbit(a) ? a : b) : a < b ? a : b;
}

static inline F32 multiplyAdd(F32 a, F32 b, F32 c) { return __builtin_fmaf(a, b, c); }
static inline F64 multiplyAdd(F64 a, F64 b, F64 c) { return __builtin_fma(a, b, c); }
static inline F32 squareRoot(F32 a) { return __builtin_sqrtf(a); }
static inline F64 squareRoot(F64 a) { return __builtin_sqrt(a); }
static inline F32 magnitude(F32 a) { return number(bitsOf(a) & 0x7fffffffu); }
static inline F64 magnitude(F64 a) { return number(bitsOf(a) & 0x7fffffffffffffffull); }

// flushed returns a zero of the same sign for a subnormal number.
static inline F32 flushed(F32 a) { return magnitude(a) < number(0x00800000u) ? number(bitsOf(a) & 0x80000000u) : a; }
static inline F32 nearest(F32 a) { return __builtin_rintf(a); }
static inline F64 nearest(F64 a) { return __builtin_rint(a); }
static inline F32 towardsZero(F32 a) { return __builtin_truncf(a); }
static inline F64 towardsZero(F64 a) { return __builtin_trunc(a); }

// whole truncates a number to an integer, saturating; NaN becomes 0.
static inline S32 whole(F64 a) { return isNaN(a) ? 0 : a >= 2147483647.0 ? 2147483647 : a <= -2147483648.0 ? -2147483647 - 1 : (S32)a; }
static inline S32 whole(F32 a) { return whole((F64)a); }

// bf16 rounds to seven bits of fraction, to nearest even; bf16Down rounds towards zero. Beyond the
// largest number the first returns infinity, the second the largest number.
static inline U16 bf16Down(F32 v) { return isNaN(v) ? 0x7fff : bitsOf(v) >> 16; }
static inline U16 bf16(F32 v) {
  U32 rest = bitsOf(v) & 0xffff;
  U16 down = bf16Down(v);
  return !isNaN(v) && (rest > 0x8000 || (rest == 0x8000 && (down & 1))) ? down + 1 : down;
}

// A quotient by zero has all bits set, and the remainder is the dividend, as on GPUs; PTX leaves it
// undefined.
template <class T>
static inline T quotient(T a, T b) {
  if (b == 0) return (T)-1;
  return (T)-1 < 0 && b == (T)-1 ? (T)(0 - (U64)a) : (T)(a / b);
}
template <class T>
static inline T remainder(T a, T b) {
  if (b == 0) return a;
  return (T)-1 < 0 && b == (T)-1 ? 0 : (T)(a % b);
}

// Shifts by more than all bits leave 0, or copies of the sign.
template <class T>
static inline T shiftLeft(T a, U32 by) {
  return by < 8 * sizeof(T) ? (T)(a << by) : 0;
}
template <class T>
static inline T shiftRight(T a, U32 by) {
  return by < 8 * sizeof(T) ? (T)(a >> by) : (T)-1 < 0 && a < 0 ? (T)-1 : 0;
}

// bitField extracts a number of bits from a position on, the last of which is the sign of a signed
// result; only the low eight bits of both numbers count.
template <class T>
static inline T bitField(T a, U32 from, U32 count) {
  from &= 255, count &= 255;
  T field = shiftRight(a, from);
  if (count >= 8 * sizeof(T)) return field;
  U64 mask = ((U64)1 << count) - 1, low = field & mask;
  bool negative = (T)-1 < 0 && count > 0 && low >> (count - 1);
  return (T)(negative ? low | ~mask : low);
}

static inline U32 leadingZeros(U64 a) { return a ? __builtin_clzll(a) : 64; }

}  // namespace ptx
}  // namespace pollen
