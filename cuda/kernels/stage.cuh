// The way of a product's operands from global to shared memory, a stage after the other: so many depths of a tile's rows of a, or of its columns of b.
//
// Shared memory holds the numbers as they are, [depth, side]. Four neighbours along the side are a chunk, which is read at once. Chunk c of depth d
// lies at place c ^ d % 8 of its depth, so that the eight lanes that share the 32 banks in an access of 16 bytes meet all of them when
//   - they have the chunks i and i + 4 of the depths d to d + 3, as the tensor cores' fragments are read (tensorcore.cuh),
//   - they have eight chunks of a depth, as the ordinary cores read b, and as copies of 16 bytes write,
// and the 32 lanes of an access of 4 bytes do when they have a chunk of eight depths, as operands whose depth is contiguous are written.
//
// Copies of 4 bytes are slow: a warp's took some 15 cycles on an H100. So a matrix whose depth is contiguous and a multiple of four comes in deep chunks, of
// four depths: each thread has some copied to anywhere in the stage, and when they are there moves their numbers to their places.
#pragma once

#include "pollen.cuh"

namespace pollen {

// Vector is read and written at once.
template <class T, int n>
struct alignas(n * sizeof(T) < 16 ? n * sizeof(T) : 16) Vector {
  T v[n];
};

// Line is what shared memory is made of.
using Line = Vector<float, 4>;

INLINE void copyWord(float* to, const float* from, bool there) { copyAsync4(to, from, there); }
INLINE void copyChunk(float* to, const float* from, bool there) { copyAsync16(to, from, there); }
INLINE void loadChunk(float* to, const float* from, bool there) { loadIf4(there, from, to); }
INLINE void loadChunk(double* to, const double* from, bool there) {
#pragma unroll
  for (int j = 0; j < 4; j++) to[j] = loadIf(there, from + j);
}

// StageOf is a stage's part of one operand, of which each thread brings count numbers, number i at place i of one of the ways below. A block may have
// several groups of so many threads.
template <int side_, int depth_, int threads_, int groups = 1>
struct StageOf {
  static constexpr int side = side_, depth = depth_, threads = threads_, count = side * depth / threads;
  static_assert(side % 32 == 0 && depth % 8 == 0 && count % 4 == 0, "eight chunks to a depth, a chunk to a thread");

  // Place is the thread's first place, and how much further on another one is, which the compiler knows. They have no bit of a depth in common.
  struct Coord {
    unsigned x, d;
    int acrossX, acrossD;

    INLINE int offset() const {
      unsigned bank = x + acrossX % 32 ^ d % 8 * 4 ^ acrossD % 8 * 4;
      return d * side + bank + acrossD * side + acrossX / 32 * 32;
    }
  };

  // thread is a thread's number in its group.
  static INLINE unsigned thread() { return groups > 1 ? opaque(threadIdx.x) % threads : opaque(threadIdx.x); }

  // alongSide gives the lanes of a warp neighbours along the side.
  static INLINE Coord alongSide(unsigned thread, int i) {
    static_assert(threads % side == 0, "a thread has one place along the side");
    return {thread % side, thread / side % (threads / side), 0, i * (threads / side)};
  }

  // alongDepth gives the lanes of a warp four neighbours along the side times eight in depth.
  static INLINE Coord alongDepth(unsigned thread, int i) {
    constexpr int eights = depth / 8, warps = threads / 32 / eights;
    static_assert(threads % (32 * eights) == 0 && 32 % (4 * warps) == 0, "a thread has one depth of each stage");
    return {thread / 32 / eights % warps * 4 + thread % 32 / 8, thread / 32 % eights * 8 + thread % 8, i * warps * 4, 0};
  }

  // deepChunk is the first of four depths of one place along the side. It lies at rawOffset until all threads store its numbers where they belong.
  static INLINE Coord deepChunk(unsigned thread, int i) {
    static_assert(depth == 16 && threads % 64 == 0, "a row has four chunks");
    return {thread % 32 / 2 + thread / 64 * 16, thread % 2 * 4 + thread / 32 % 2 * 8, i * (threads / 4), 0};
  }
  static INLINE int rawOffset(unsigned thread, int i) { return 4 * (thread + i * threads); }

  // chunk is the first of the four numbers that a thread brings at once.
  static INLINE Coord chunk(unsigned thread, int i) {
    constexpr int chunks = side / 4, step = threads / chunks;
    static_assert(threads % chunks == 0, "a thread has one chunk of each depth");
    return {thread % chunks * 4, thread / chunks % step, 0, i * step};
  }
};

// An operand of a product is a type with
//
//     begin(x)                        before all else: the tile's first row of a, or first column of b
//     advance(k, end, i)              announces the depths from k on, less than end, as stage i, which is 0 or 1; a barrier follows
//     inChunks()                      whether chunks are contiguous in memory, and whole
//     chunks<Stage>(k, i, f)          calls f(number, place, address, whether it is in the operand) for each of a thread's chunks, or
//     words<Stage, numbered>(k, i, f) for each of a thread's numbers of stage i, which begins at depth k; the compiler knows the number if numbered
//
template <class T>
struct Matrix;

template <class Operand>
constexpr bool isMatrix = false;
template <class T>
constexpr bool isMatrix<Matrix<T>> = true;

// copy starts the copies of a stage; cp.async, from sm_80 on. If deep, the operand is a matrix, which may lie in deep chunks.
template <class Stage, bool deep, class T, class Operand>
INLINE void copy(const Operand& operand, int k, int parity, T* memory) {
  if constexpr (deep) {
    if (operand.inDeepChunks()) {
      operand.template deepChunks<Stage>(k, [&](int place, const T* from, bool there) INLINED { copyChunk(memory + place, from, there); });
      return;
    }
  }
  if (operand.inChunks())
    operand.template chunks<Stage>(k, parity, [&](int, int place, const T* from, bool there) INLINED { copyChunk(memory + place, from, there); });
  else
    operand.template words<Stage, false>(k, parity, [&](int, int place, const T* from, bool there) INLINED { copyWord(memory + place, from, there); });
}

// Turned is a thread's deep chunks on their way from where it had them copied to their places. A barrier comes between, and one after.
template <class Stage, class T>
struct TransposedChunks {
  Vector<T, 4> v[Stage::count / 4];

  INLINE void load(const T* memory) {
#pragma unroll
    for (int i = 0; i < Stage::count / 4; i++) v[i] = *(const Vector<T, 4>*)(memory + Stage::rawOffset(Stage::thread(), i));
  }
  INLINE void store(T* memory) const {
    auto p = Stage::deepChunk(Stage::thread(), 0);
#pragma unroll
    for (int i = 0; i < Stage::count / 4; i++) {
      p.acrossX = Stage::deepChunk(0, i).acrossX;
#pragma unroll
      for (int j = 0; j < 4; j++) {
        p.acrossD = j;
        memory[p.offset()] = v[i].v[j];
      }
    }
  }
};

// Fetch is a thread's numbers on their way through registers, before sm_80.
template <class Stage, class T>
struct RegisterStage {
  T value[Stage::count];

  template <class Operand>
  INLINE void load(const Operand& operand, int k, int parity) {
    if (operand.inChunks())
      operand.template chunks<Stage>(k, parity, [&](int i, int, const T* from, bool there) INLINED { loadChunk(value + 4 * i, from, there); });
    else
      operand.template words<Stage, true>(k, parity, [&](int i, int, const T* from, bool there) INLINED { value[i] = loadIf(there, from); });
  }

  template <class Operand>
  INLINE void store(const Operand& operand, int k, int parity, T* memory) const {
    if (operand.inChunks())
      operand.template chunks<Stage>(k, parity, [&](int i, int place, const T*, bool) INLINED {
        *(Vector<T, 4>*)(memory + place) = {value[4 * i], value[4 * i + 1], value[4 * i + 2], value[4 * i + 3]};
      });
    else
      operand.template words<Stage, true>(k, parity, [&](int i, int place, const T*, bool) INLINED { memory[place] = value[i]; });
  }
};

// Matrix is an operand in memory: [depth, extent], or [extent, depth] when it lies alongDepth.
template <class T>
struct Matrix {
  const T* data;
  int extent, depth;
  bool alongDepth;
  int first, end;

  INLINE void begin(int x) { first = x; }
  INLINE void advance(int, int to, int) { end = to; }
  INLINE bool inChunks() const { return !alongDepth && extent % 4 == 0; }
  INLINE bool inDeepChunks() const { return alongDepth && depth % 4 == 0; }

  template <class Stage, class F>
  INLINE void deepChunks(int k, F f) const {
    auto p = Stage::deepChunk(Stage::thread(), 0);
    int left = k + p.d < end ? extent - first - p.x : 0;
    const T* from = data + ((first + p.x) * depth + k + p.d);
#pragma unroll
    for (int i = 0; i < Stage::count / 4; i++) {
      p.acrossX = Stage::deepChunk(0, i).acrossX;
      f(Stage::rawOffset(Stage::thread(), i), from + p.acrossX * depth, p.acrossX < left);
    }
  }

  template <class Stage, class F>
  INLINE void chunks(int k, int, F f) const {
    auto p = Stage::chunk(Stage::thread(), 0);
    const T* from = data + ((k + p.d) * extent + first + p.x);
    int left = first + p.x < extent ? end - k - p.d : 0;
#pragma unroll
    for (int i = 0; i < Stage::count / 4; i++) {
      p.acrossD = Stage::chunk(0, i).acrossD;
      f(i, p.offset(), from + p.acrossD * extent, p.acrossD < left);
    }
  }

  template <class Stage, bool, class F>
  INLINE void words(int k, int, F f) const {
    auto p = Stage::alongDepth(Stage::thread(), 0);
    int across = alongDepth ? depth : 1, down = alongDepth ? 1 : extent, left = k + p.d < end ? extent - first - p.x : 0;
    const T* from = data + ((k + p.d) * down + (first + p.x) * across);
#pragma unroll
    for (int i = 0; i < Stage::count; i++) {
      p.acrossX = Stage::alongDepth(0, i).acrossX;
      f(i, p.offset(), from + p.acrossX * across, p.acrossX < left);
    }
  }
};

}  // namespace pollen
