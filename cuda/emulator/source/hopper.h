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

// groupDigest hashes the operands' memory, to detect changes.
inline unsigned long long groupDigest(const ProductReads& r) {
  unsigned long long sum = 0;
  for (int side = 0; side < 2; side++)
    for (int row = 0; row < (side ? r.columns : 64); row++)
      for (int i = 0; i < 16; i++) sum = (sum ^ groupRow((const char*)r.memory, r.operands[side], row, i / 8)[i % 8]) * 0x100000001b3ull;
  return sum;
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
    for (int k = 0; k < 16; k++) {
      for (int row = 0; row < 64; row++) left[row][k] = wordToFloat((unsigned)groupRow((const char*)reads.memory, a, row, k / 8)[k % 8] << 16);
      for (int column = 0; column < columns; column++)
        right[k][column] = wordToFloat((unsigned)groupRow((const char*)reads.memory, b, column, k / 8)[k % 8] << 16);
    }
    for (int row = 0; row < 64; row++) {
      float sum[columns];
      for (int column = 0; column < columns; column++) sum[column] = 0;
      for (int k = 0; k < 16; k++)
        for (int column = 0; column < columns; column++) sum[column] += left[row][k] * right[k][column];
      putProduct(row * columns, sum, columns);
    }
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
    for (int i = 0; i < r.columns; i++) sum = (sum ^ groupAcross((const char*)r.memory, r.operands[1], k, i / 8)[i % 8]) * 0x100000001b3ull;
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
    const unsigned(*left)[4] = sharedLeft();
    for (int row = 0; row < 64; row++) {
      float sum[columns];
      for (int column = 0; column < columns; column++) sum[column] = 0;
      for (int k = 0; k < 16; k++) {
        unsigned word = left[row / 16 * 32 + row % 8 * 4 + k % 8 / 2][row % 16 / 8 + k / 8 * 2];
        float x = wordToFloat(k % 2 ? word & 0xffff0000u : word << 16);
        for (int column = 0; column < columns; column++)
          sum[column] += x * wordToFloat((unsigned)groupAcross((const char*)reads.memory, b, k, column / 8)[column % 8] << 16);
      }
      putProduct(row * columns, sum, columns);
    }
  }
  addToGroup(d, columns);
}

}  // namespace pollen
