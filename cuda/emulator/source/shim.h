// The words of device.cuh for a CPU: a CUDA thread is a fiber, see block.h.
#pragma once

#include <cstdint>
#include <cstring>

#include "block.h"

#ifdef POLLEN_LIST
// Preprocessed alone: the builder reads the kernels' names from the lines that begin so.
#define KERNEL(name, threads) POLLEN_KERNEL name threads POLLEN_END
#else
#define KERNEL(name, threads) extern "C" void name
#endif

#define __global__
#define __device__
#define __shared__ static_assert(false, "write SHARED or DYNAMIC_SHARED");
#define __forceinline__ inline

#define threadIdx (::pollen::here.thread)
#define blockIdx (::pollen::here.block)
#define blockDim (::pollen::here.threads)
#define gridDim (::pollen::here.blocks)

// A static inside a lambda is one object for each place and each instance of a template: the array's identity in its block.
#define SHARED(T, name, count)                                  \
  T(&name)[count] = *(T(*)[count])::pollen::shared(             \
      [] {                                                      \
        static char place;                                      \
        return (const void*)&place;                             \
      }(),                                                      \
      sizeof(T) * (count))
#define DYNAMIC_SHARED(T, name) T* name = (T*)::pollen::dynamicShared()

namespace pollen {

template <class T>
inline T* globalPointer(unsigned long long address) {
  return (T*)(uintptr_t)address;
}

// loadIf is *from, or 0 without a look at it.
template <class T>
inline T loadIf(bool there, const T* from) {
  return there ? *from : T(0);
}

inline void barrier() { wait(Wait::Block); }
inline void warpBarrier() { wait(Wait::Warp); }

// lanes is what the 32 threads of the warp give in one exchange.
template <class T>
inline void exchange(Wait kind, const T& mine, T (&lanes)[32]) {
  static_assert(sizeof(T) <= laneBytes, "a lane gives no more");
  exchange(kind, &mine, sizeof(T), lanes);
}

template <class T>
inline T shuffle(T v, int lane) {
  T lanes[32];
  exchange(Wait::Shuffle, v, lanes);
  return lanes[lane & 31];
}

template <class T>
inline T shuffleXor(T v, int mask) {
  return shuffle(v, laneNumber() ^ mask);
}

// shuffleDown is the value of the lane that many further on; the last lanes keep their own.
template <class T>
inline T shuffleDown(T v, int distance) {
  int lane = laneNumber() + distance;
  return shuffle(v, lane < 32 ? lane : laneNumber());
}

// A copy happens when it is waited for, so that a missing wait shows as memory without values.
inline void copyAsync16(void* to, const void* from) { copyLater(to, from, 16, 16); }
inline void copyAsync8(void* to, const void* from) { copyLater(to, from, 8, 8); }
inline void copyAsync4(void* to, const void* from) { copyLater(to, from, 4, 4); }
inline void copyAsync16(void* to, const void* from, int bytes) { copyLater(to, from, bytes, 16); }
inline void copyAsync4(void* to, const void* from, int bytes) { copyLater(to, from, bytes, 4); }
inline void copyAsyncCommit() { copyCommit(); }
template <int N>
inline void copyAsyncWait() {
  copyWait(N);
}

// loadMatrix4 gives each lane a 32-bit word of each of four 8x8 matrices of 16-bit elements: lane l has row l/4, columns 2(l%4) and
// the one after. Lane l brings the address of row l%8 of matrix l/8.
inline void loadMatrix4(unsigned d[4], const void* row) {
  const char* rows[32];
  exchange(Wait::LoadMatrix, (const char*)row, rows);
  for (int m = 0; m < 4; m++) memcpy(&d[m], rows[8 * m + laneNumber() / 4] + 4 * (laneNumber() % 4), 4);
}

inline float wordToFloat(unsigned word) {
  float v;
  memcpy(&v, &word, 4);
  return v;
}

// roundTF32 is the word of the nearest number with ten bits of fraction; of two, the one further from zero.
inline unsigned roundTF32(float v) {
  unsigned word;
  memcpy(&word, &v, 4);
  return v - v == 0 ? (word + (1u << 12)) & ~((1u << 13) - 1) : word;
}

// packBF16 is the word of the bfloat16 numbers nearest to low and high; of two, the even one.
inline unsigned packBF16(float low, float high) {
  float pair[2] = {low, high};
  unsigned word[2];
  memcpy(word, pair, sizeof word);
  for (int i = 0; i < 2; i++) word[i] = pair[i] != pair[i] ? 0x7fff : (word[i] + 0x7fff + (word[i] >> 16 & 1)) >> 16;
  return word[0] | word[1] << 16;
}

// mmaTF32_16x8x8 is d += a b over a warp, a 16 x 8, b 8 x 8, d 16 x 8: the PTX manual's fragments for m16n8k8.
inline void mmaTF32_16x8x8(float d[4], const unsigned a[4], const unsigned b[2]) {
  struct Lane {
    unsigned a[4], b[2];
  } mine, lanes[32];
  memcpy(mine.a, a, sizeof mine.a);
  memcpy(mine.b, b, sizeof mine.b);
  exchange(Wait::MultiplyTF32, mine, lanes);
  int group = laneNumber() / 4, pair = laneNumber() % 4;
  const unsigned tf32 = ~((1u << 13) - 1);
  for (int i = 0; i < 4; i++) {
    int row = group + 8 * (i / 2), column = 2 * pair + i % 2;
    float sum = 0;
    for (int k = 0; k < 8; k++) {
      unsigned x = lanes[4 * (row % 8) + k % 4].a[row / 8 + 2 * (k / 4)], y = lanes[4 * column + k % 4].b[k / 4];
      sum += wordToFloat(x & tf32) * wordToFloat(y & tf32);
    }
    d[i] += sum;
  }
}

// mmaBF16_16x8x16 is d += a b over a warp, a 16 x 16, b 16 x 8, d 16 x 8, two bfloat16 to a word: the fragments for m16n8k16.
inline void mmaBF16_16x8x16(float d[4], const unsigned a[4], const unsigned b[2]) {
  struct Lane {
    unsigned a[4], b[2];
  } mine, lanes[32];
  memcpy(mine.a, a, sizeof mine.a);
  memcpy(mine.b, b, sizeof mine.b);
  exchange(Wait::MultiplyBF16, mine, lanes);
  int group = laneNumber() / 4, pair = laneNumber() % 4;
  for (int i = 0; i < 4; i++) {
    int row = group + 8 * (i / 2), column = 2 * pair + i % 2;
    float sum = 0;
    for (int k = 0; k < 16; k++) {
      unsigned x = lanes[4 * (row % 8) + k % 8 / 2].a[row / 8 + 2 * (k / 8)], y = lanes[4 * column + k % 8 / 2].b[k / 8];
      int shift = k % 2 ? 0 : 16;
      sum += wordToFloat((x << shift) & 0xffff0000u) * wordToFloat((y << shift) & 0xffff0000u);
    }
    d[i] += sum;
  }
}

}  // namespace pollen
