// The types of PTX.
#pragma once

#include "block.h"

namespace pollen {
namespace ptx {

using U8 = unsigned char;
using U16 = unsigned short;
using U32 = unsigned;
using U64 = unsigned long long;
using S8 = signed char;
using S16 = short;
using S32 = int;
using S64 = long long;
using F32 = float;
using F64 = double;
static_assert(sizeof(U16) == 2 && sizeof(U32) == 4 && sizeof(U64) == 8 && sizeof(F32) == 4 && sizeof(F64) == 8, "sizes");

// bitsOf returns a number's bits, number the number with some bits.
static inline U32 bitsOf(F32 v) {
  U32 bits;
  __builtin_memcpy(&bits, &v, 4);
  return bits;
}
static inline U64 bitsOf(F64 v) {
  U64 bits;
  __builtin_memcpy(&bits, &v, 8);
  return bits;
}
static inline F32 number(U32 bits) {
  F32 v;
  __builtin_memcpy(&v, &bits, 4);
  return v;
}
static inline F64 number(U64 bits) {
  F64 v;
  __builtin_memcpy(&v, &bits, 8);
  return v;
}

// unwritten is a register's value before it is written to: the NaN that GPUs produce.
constexpr U32 unwritten32 = 0x7fffffff;
constexpr U64 unwritten64 = 0x7fffffff7fffffff;

}  // namespace ptx
}  // namespace pollen
