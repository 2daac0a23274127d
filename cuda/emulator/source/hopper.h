// hopper.cuh's interface on a CPU.
#pragma once

#include "shim.h"

namespace pollen {

struct alignas(128) AlignedShared {
  unsigned words[32];
};

using MBarrier = unsigned long long;

inline void mbarrierInit(MBarrier* b, int arrivals) { initPhase(b, arrivals); }
inline void fenceProxyAsync() { fencePhases(); }
inline void mbarrierArriveExpectTx(MBarrier* b, int bytes) { arriveAtPhase(b, bytes); }
inline void mbarrierArrive(MBarrier* b) { arriveAtPhase(b, 0); }
inline void copyAsyncBulk(void* to, const void* from, int bytes, MBarrier* b) { copyBulk(to, from, (size_t)bytes, (const void*)b); }
inline bool mbarrierTryWait(MBarrier* b, int odd) { return tryWaitPhase(b, odd); }

// A phase that never ends is an error at once, so no time passes here.
inline unsigned globalTimerHigh() { return 0; }
inline void trap() { fault("traps"); }

inline void wgmmaFence() { fenceProducts(); }
inline void wgmmaCommit() { commitProducts(); }
template <int n, bool more>
inline void setMaxRegisters() {}
template <int n>
inline void wgmmaWait() {
  waitProducts(n);
}

// matrixDescriptor: the start address is an offset in the launch's own shared memory.
inline unsigned long long matrixDescriptor(void* memory, unsigned bytes, unsigned acrossDepth, unsigned acrossRows) {
  unsigned long long at = (char*)memory - (char*)dynamicShared();
  if (at % sizeof(AlignedShared)) fault("describes a matrix by memory that does not begin at a multiple of 128 bytes");
  at += bytes;
  return at >> 4 | (unsigned long long)(acrossDepth >> 4) << 16 | (unsigned long long)(acrossRows >> 4) << 32;
}

// groupRow returns 8 numbers of a row of a K-major matrix, by its descriptor.
inline const uint16_t* groupRow(const char* memory, unsigned long long d, int row, int eight) {
  size_t at = (d & 0x3fff) * 16 + (d >> 16 & 0x3fff) * 16 * eight + (d >> 32 & 0x3fff) * 16 * (row / 8) + row % 8 * 16;
  if (d >> 46 != 0 || at + 16 > dynamicBytes()) fault("multiplies what is outside of its shared memory, or described with a swizzle");
  return (const uint16_t*)(memory + at);
}

// digested adds sixteen bytes to a digest.
inline unsigned long long digested(unsigned long long sum, const uint16_t* eight) {
  unsigned long long words[2];
  memcpy(words, eight, sizeof words);
  for (unsigned long long word : words) sum = (sum ^ word) * 0x9e3779b97f4a7c15ull, sum ^= sum >> 29;
  return sum;
}

// groupDigest hashes the operands' memory, to detect changes.
inline unsigned long long groupDigest(const ProductReads& r) {
  unsigned long long sum = 0;
  for (int side = 0; side < 2; side++)
    for (int row = 0; row < (side ? r.columns : 64); row++)
      for (int eight = 0; eight < 2; eight++) sum = digested(sum, groupRow((const char*)r.memory, r.operands[side], row, eight));
  return sum;
}

// Eight are neighbouring sums of a product.
typedef float Eight __attribute__((vector_size(32), aligned(4)));

// multiplyRow puts a row of a product, which is that of 16 numbers and 16 rows. Every sum adds its
// products in the order of the depth.
template <int columns>
inline void multiplyRow(int row, const float (&left)[16], const float (&right)[16][columns]) {
  float all[columns];
  for (int column = 0; column < columns; column += 8) {
    Eight sum = {};
    for (int k = 0; k < 16; k++) sum += left[k] * *(const Eight*)&right[k][column];
    *(Eight*)&all[column] = sum;
  }
  putProduct(row * columns, all, columns);
}

// addToGroup adds the warpgroup's product to a thread's accumulators.
template <int sums>
inline void addToGroup(float (&d)[sums], int columns) {
  int lane = laneNumber(), warp = (int)threadIdx.x / 32 % 4, places[sums];
  float* to[sums];
  for (int i = 0; i < sums; i++) {
    int row = 16 * warp + lane / 4 + i % 4 / 2 * 8, column = i / 4 * 8 + lane % 4 * 2 + i % 2;
    places[i] = row * columns + column, to[i] = d + i;
  }
  addProduct(to, places, sums, true);
}

template <int sums>
inline void wgmma(float (&d)[sums], unsigned long long a, unsigned long long b) {
  constexpr int columns = 2 * sums;
  if (meetGroup({a, b})) {
    ProductReads reads = {groupDigest, dynamicShared(), {a, b}, columns, {}};
    productReads(reads);
    float left[64][16], right[16][columns];
    for (int eight = 0; eight < 2; eight++) {
      for (int row = 0; row < 64; row++) {
        const uint16_t* from = groupRow((const char*)reads.memory, a, row, eight);
        for (int k = 0; k < 8; k++) left[row][8 * eight + k] = wordToFloat((unsigned)from[k] << 16);
      }
      for (int column = 0; column < columns; column++) {
        const uint16_t* from = groupRow((const char*)reads.memory, b, column, eight);
        for (int k = 0; k < 8; k++) right[8 * eight + k][column] = wordToFloat((unsigned)from[k] << 16);
      }
    }
    for (int row = 0; row < 64; row++) multiplyRow(row, left[row], right);
  }
  addToGroup(d, columns);
}

// groupAcross returns 8 columns of a row of depth of an MN-major matrix, by its descriptor.
inline const uint16_t* groupAcross(const char* memory, unsigned long long d, int depth, int eight) {
  size_t at = (d & 0x3fff) * 16 + (d >> 16 & 0x3fff) * 16 * (depth / 8) + (d >> 32 & 0x3fff) * 16 * eight + depth % 8 * 16;
  if (d >> 46 != 0 || at + 16 > dynamicBytes()) fault("multiplies what is outside of its shared memory, or described with a swizzle");
  return (const uint16_t*)(memory + at);
}

// wordsDigest and acrossDigest hash the operands in registers and in memory, to detect changes.
inline unsigned long long wordsDigest(const ProductReads& r) {
  unsigned long long sum = 0;
  for (const unsigned* word : r.words) sum = (sum ^ *word) * 0x100000001b3ull;
  return sum;
}
inline unsigned long long acrossDigest(const ProductReads& r) {
  unsigned long long sum = 0;
  for (int k = 0; k < 16; k++)
    for (int eight = 0; eight < r.columns / 8; eight++) sum = digested(sum, groupAcross((const char*)r.memory, r.operands[1], k, eight));
  return sum;
}

// The product with the left operand in registers and the right one MN-major.
inline void wgmma(float (&d)[32], const unsigned (&a)[4], unsigned long long b) {
  constexpr int columns = 64;
  shareLeft({a, a + 1, a + 2, a + 3});
  productReads({wordsDigest, nullptr, {}, 0, {a, a + 1, a + 2, a + 3}});
  if (meetGroup({0, b})) {
    ProductReads reads = {acrossDigest, dynamicShared(), {0, b}, columns, {}};
    productReads(reads);
    const unsigned(*words)[4] = sharedLeft();
    float right[16][columns];
    for (int k = 0; k < 16; k++)
      for (int eight = 0; eight < columns / 8; eight++) {
        const uint16_t* from = groupAcross((const char*)reads.memory, b, k, eight);
        for (int i = 0; i < 8; i++) right[k][8 * eight + i] = wordToFloat((unsigned)from[i] << 16);
      }
    for (int row = 0; row < 64; row++) {
      float left[16];
      for (int k = 0; k < 16; k++) {
        unsigned word = words[row / 16 * 32 + row % 8 * 4 + k % 8 / 2][row % 16 / 8 + k / 8 * 2];
        left[k] = wordToFloat(k % 2 ? word & 0xffff0000u : word << 16);
      }
      multiplyRow(row, left, right);
    }
  }
  addToGroup(d, columns);
}

}  // namespace pollen
