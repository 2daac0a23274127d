// device.cuh's interface on a CPU: a CUDA thread is a fiber, see block.h.
#pragma once

#include <cstdint>
#include <cstring>

#include "block.h"

#ifdef POLLEN_LIST
// When only preprocessed: the builder reads the kernels' names from these lines.
#define KERNEL(name, threads, ...) POLLEN_KERNEL name threads POLLEN_END
#else
#define KERNEL(name, ...) extern "C" void name
#endif

#define __global__
#define __device__
#define __shared__ static_assert(false, "write SHARED or DYNAMIC_SHARED");
#define __forceinline__ inline

#define threadIdx (::pollen::here.thread)
#define blockIdx (::pollen::here.block)
#define blockDim (::pollen::here.threads)
#define gridDim (::pollen::here.blocks)

// A static inside a lambda is a distinct object for each place and each instance of a template: it
// identifies the array in its block.
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

inline float rsqrtApprox(float x) { return (float)(1 / __builtin_sqrt((double)x)); }
inline float reciprocalApprox(float x) { return (float)(1 / (double)x); }

// maxNaN returns the larger of two numbers, or NaN if either is NaN.
inline float maxNaN(float a, float b) { return a > b ? a : a < b ? b : a == b && a != 0 ? a : a + b; }

template <class T>
inline void keepLive(T, T, T, T) {}

// loadIf returns *from if there is set, and 0 without accessing memory otherwise.
template <class T>
inline T loadIf(bool there, const T* from) {
  return there ? *from : T(0);
}

// loadIf4 is loadIf for four consecutive floats. from must be a multiple of 16 bytes.
inline void loadIf4(bool there, const float* from, float* to) {
  for (int i = 0; i < 4; i++) to[i] = loadIf(there, from + i);
}

inline void prefetchLine(const void*) {}

inline void barrier() { wait(Wait::Block); }
inline void warpBarrier() { wait(Wait::Warp); }

// exchange collects the values of the warp's 32 threads in lanes.
template <class T>
inline void exchange(Wait kind, const T& mine, T (&lanes)[32]) {
  static_assert(sizeof(T) <= laneBytes, "a lane gives no more");
  Exchanged* exchanged = exchange(kind, &mine, sizeof(T));
  for (int i = 0; i < 32; i++) memcpy(&lanes[i], exchanged[i], sizeof(T));
}

template <class T>
inline T shuffle(T v, int lane) {
  static_assert(sizeof(T) <= laneBytes, "a lane gives no more");
  memcpy(&v, exchange(Wait::Shuffle, &v, sizeof(T))[lane & 31], sizeof(T));
  return v;
}

inline int firstLane(int v) { return shuffle(v, 0); }

template <class T>
inline T shuffleXor(T v, int mask) {
  return shuffle(v, laneNumber() ^ mask);
}

// A copy happens when it is waited for; until then its destination holds NaN, so that a missing
// wait or barrier shows.
inline void copyAsync4(void* to, const void* from, bool there) { copyLater(to, from, there ? 4 : 0, 4); }
inline void copyAsync16(void* to, const void* from, bool there) { copyLater(to, from, there ? 16 : 0, 16); }
inline void copyAsyncCommit() { copyCommit(); }
template <int n>
inline void copyAsyncWait() {
  copyWait(n);
}

inline float wordToFloat(unsigned word) {
  float v;
  memcpy(&v, &word, 4);
  return v;
}

// packBF16 rounds two floats to bfloat16, to nearest even, and packs them into a word.
inline unsigned packBF16(float low, float high) {
  float pair[2] = {low, high};
  unsigned word[2];
  memcpy(word, pair, sizeof word);
  for (int i = 0; i < 2; i++) word[i] = pair[i] != pair[i] ? 0x7fff : (word[i] + 0x7fff + (word[i] >> 16 & 1)) >> 16;
  return word[0] | word[1] << 16;
}

// ldmatrixX4: lane 8 m + r passes the address of row r of matrix m, 16 bytes.
inline void ldmatrixX4(unsigned (&words)[4], void* memory, unsigned bytes) {
  const char *mine = (const char*)memory + bytes, *rows[32];
  exchange(Wait::LoadMatrix, mine, rows);
  for (int m = 0; m < 4; m++) words[m] = *(const unsigned*)(rows[8 * m + laneNumber() / 4] + laneNumber() % 4 * 4);
}
inline void ldmatrixX4Trans(unsigned (&words)[4], void* memory, unsigned bytes) {
  const char *mine = (const char*)memory + bytes, *rows[32];
  exchange(Wait::LoadMatrix, mine, rows);
  for (int m = 0; m < 4; m++) {
    words[m] = 0;
    for (int i = 0; i < 2; i++) {
      unsigned short number;
      memcpy(&number, rows[8 * m + laneNumber() % 4 * 2 + i] + laneNumber() / 4 * 2, 2);
      words[m] |= (unsigned)number << 16 * i;
    }
  }
}

// Four are the sums of one thread in a product of a warp: of rows group and group + 8, each of two
// columns. Every sum adds its products in the order of the depth.
typedef float Four __attribute__((vector_size(16)));

inline void addFour(Four& sum, unsigned upper, unsigned lower, unsigned left, unsigned right) {
  float a = wordToFloat(upper), b = wordToFloat(lower), c = wordToFloat(left), d = wordToFloat(right);
  sum += Four{a, a, b, b} * Four{c, d, c, d};
}

// mmaTF32_16x8x8 computes d += a b across a warp, a 16 x 8, b 8 x 8, d 16 x 8, in the fragment
// layout of mma.m16n8k8.
inline void mmaTF32_16x8x8(float d[4], const unsigned a[4], const unsigned b[2]) {
  struct Lane {
    unsigned a[4], b[2];
  } mine;
  memcpy(mine.a, a, sizeof mine.a);
  memcpy(mine.b, b, sizeof mine.b);
  Exchanged* lanes = exchange(Wait::MultiplyTF32, &mine, sizeof mine);
  int lane = laneNumber(), group = lane / 4, pair = lane % 4;
  const unsigned tf32 = ~((1u << 13) - 1);
  Four sum = {};
  for (int k = 0; k < 8; k++) {
    const Lane* x = (const Lane*)lanes[4 * group + k % 4];
    const Lane *left = (const Lane*)lanes[8 * pair + k % 4], *right = (const Lane*)lanes[8 * pair + 4 + k % 4];
    addFour(sum, x->a[2 * (k / 4)] & tf32, x->a[1 + 2 * (k / 4)] & tf32, left->b[k / 4] & tf32, right->b[k / 4] & tf32);
  }
  for (int i = 0; i < 4; i++) d[i] += sum[i];
}

// mmaBF16_16x8x16 computes d += a b across a warp, a 16 x 16, b 16 x 8, d 16 x 8, two bfloat16 to a
// word, in the fragment layout of mma.m16n8k16.
inline void mmaBF16_16x8x16(float d[4], const unsigned a[4], const unsigned b[2]) {
  struct Lane {
    unsigned a[4], b[2];
  } mine;
  memcpy(mine.a, a, sizeof mine.a);
  memcpy(mine.b, b, sizeof mine.b);
  Exchanged* lanes = exchange(Wait::MultiplyBF16, &mine, sizeof mine);
  int lane = laneNumber(), group = lane / 4, pair = lane % 4;
  const unsigned high = 0xffff0000u;
  Four sum = {};
  for (int word = 0; word < 8; word++) {
    const Lane* x = (const Lane*)lanes[4 * group + word % 4];
    const Lane *left = (const Lane*)lanes[8 * pair + word % 4], *right = (const Lane*)lanes[8 * pair + 4 + word % 4];
    unsigned upper = x->a[2 * (word / 4)], lower = x->a[1 + 2 * (word / 4)], l = left->b[word / 4], r = right->b[word / 4];
    addFour(sum, upper << 16, lower << 16, l << 16, r << 16);
    addFour(sum, upper & high, lower & high, l & high, r & high);
  }
  for (int i = 0; i < 4; i++) d[i] += sum[i];
}

}  // namespace pollen
