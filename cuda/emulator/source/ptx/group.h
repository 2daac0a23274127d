// Instructions of compute capability 9.0: mbarrier (PTX ISA, "Parallel Synchronization and
// Communication Instructions: mbarrier"), cp.async.bulk, and wgmma ("Asynchronous Warpgroup Level
// Matrix Multiply-Accumulate Instructions").
#pragma once

#include "memory.h"

namespace pollen {
namespace ptx {

template <class S>
static inline const void* barrierAt(const S& shared, U64 at, int line) {
  return shared.watched.memory + shared.template check<8>(at, line);
}
template <class S>
static inline void initBarrier(const S& shared, U64 at, U32 arrivals, int line) {
  initPhase(shared.template writes<8>(at, line), arrivals);
}
template <class S>
static inline void arriveExpecting(const S& shared, U64 at, U32 bytes, int line) {
  arriveAtPhase(barrierAt(shared, at, line), bytes);
}
template <class S>
static inline bool tryWait(const S& shared, U64 at, U32 parity, int line) {
  if (parity > 1) complain("with a parity above 1", at, 8, line);
  return tryWaitPhase(barrierAt(shared, at, line), parity);
}

template <class S>
static inline void copyInBulk(const S& shared, U64 to, U64 from, U32 bytes, U64 barrier, int line) {
  if (bytes == 0) return;
  if (bytes % 16) complain("a copy whose size is not a multiple of 16", to, bytes, line);
  U64 place = shared.template check<16>(to, line);
  if (place + 16 != shared.template check<16>(to + bytes - 16, line) + 32 - bytes) complain("outside shared memory", to, bytes, line);
  global<16>(from + bytes - 16, line);
  copyBulk(shared.watched.memory + place, global<16>(from, line), bytes, barrierAt(shared, barrier, line));
}

// Descriptor is a matrix descriptor: the start address and the leading and stride dimension byte
// offsets, each without its lowest four bits, the base offset, and the swizzling mode.
struct Descriptor {
  U64 start, leading, stride, base, mode;

  Descriptor(U64 bits)
      : start((bits & 0x3fff) << 4), leading((bits >> 16 & 0x3fff) << 4), stride((bits >> 32 & 0x3fff) << 4), base(bits >> 49 & 7), mode(bits >> 62) {}

  // at returns the address of 16 bytes of a row in a K-major matrix without swizzling. Its core
  // matrices are 8 rows x 16 bytes; the stride dimension byte offset is from eight rows to the next
  // eight, the leading one from a column of core matrices to the next.
  U64 at(int row, int column) const { return start + row / 8 * stride + column * leading + row % 8 * 16; }

  // across returns the address of 8 columns of a row of depth in an MN-major matrix without
  // swizzling. Its core matrices are 8 rows of depth x 16 bytes; the leading dimension byte offset
  // is from eight rows of depth to the next eight, the stride one from a core matrix's columns to
  // the next columns.
  U64 across(int depth, int eight) const { return start + depth / 8 * leading + eight * stride + depth % 8 * 16; }

  void check(int line) const {
    if (base != 0 || mode != 0) complain("in a matrix with a swizzling mode, which is not supported", start, 16, line);
  }
};

// multiplyWarpgroup stores the m64nNk16 product of bf16 matrices, a 64 x 16 and b 16 x N, where the
// warpgroup reads it. Elements of b are by column.
void multiplyWarpgroup(const U16 (*a)[16], const U16 (*b)[16], int columns);

// digestOf hashes what a product reads.
unsigned long long digestOf(const ProductReads& reads);

// The same with a in registers: leftOf collects a from the threads' words, and b is MN-major.
void leftOf(U16 (*a)[16]);
unsigned long long digestOfWords(const ProductReads& reads);
unsigned long long digestAcross(const ProductReads& reads);

// groupElement returns the index in the product of register i of the thread's fragment of d.
int groupElement(int i, int columns);

// multiplyAsync is wgmma.mma_async.m64nNk16 with both operands in shared memory.
template <int columns, class S>
static inline void multiplyAsync(F32* const (&d)[columns / 2], U64 a, U64 b, bool add, const S& shared, int line) {
  if (meetGroup({a, b})) {
    U16 left[64][16], right[columns][16];
    auto fetch = [&](U16(*to)[16], int rows, U64 bits) {
      Descriptor from(bits);
      from.check(line);
      for (int row = 0; row < rows; row++)
        for (int c = 0; c < 2; c++) __builtin_memcpy(to[row] + 8 * c, shared.template reads<16>(from.at(row, c), line), 16);
    };
    fetch(left, 64, a);
    fetch(right, columns, b);
    productReads({digestOf, shared.watched.memory, {a, b}, columns, {}});
    multiplyWarpgroup(left, right, columns);
  }
  int places[columns / 2];
  for (int i = 0; i < columns / 2; i++) places[i] = groupElement(i, columns);
  addProduct(d, places, columns / 2, add);
}

// multiplyWords is the same with a in the threads' registers, which must not change either, and b
// MN-major.
template <int columns, class S>
static inline void multiplyWords(F32* const (&d)[columns / 2], const U32* const (&a)[4], U64 b, bool add, const S& shared, int line) {
  shareLeft(a);
  productReads({digestOfWords, nullptr, {}, 0, {a[0], a[1], a[2], a[3]}});
  if (meetGroup({0, b})) {
    U16 left[64][16], right[columns][16];
    Descriptor from(b);
    from.check(line);
    for (int k = 0; k < 16; k++)
      for (int eight = 0; eight < columns / 8; eight++) {
        U16 numbers[8];
        __builtin_memcpy(numbers, shared.template reads<16>(from.across(k, eight), line), 16);
        for (int i = 0; i < 8; i++) right[8 * eight + i][k] = numbers[i];
      }
    leftOf(left);
    productReads({digestAcross, shared.watched.memory, {0, b}, columns, {}});
    multiplyWarpgroup(left, right, columns);
  }
  int places[columns / 2];
  for (int i = 0; i < columns / 2; i++) places[i] = groupElement(i, columns);
  addProduct(d, places, columns / 2, add);
}

}  // namespace ptx
}  // namespace pollen
