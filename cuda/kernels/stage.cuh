// Copies a product's operands from global to shared memory, one stage after the other. A stage is a
// number of depths of a tile's rows of a, or of its columns of b; side is that number of rows or
// columns.
//
// Shared memory holds a stage as [depth, side]. Four neighbours along the side form a chunk of 16
// bytes, which is read at once. The layout is swizzled: chunk c of depth d lies at place c ^ d % 8
// of its depth. For example, chunk 0 of depths 0 to 3 lies at places 0, 1, 2, 3, that is in four
// different groups of four banks, where without swizzle all four would collide. An access of 16
// bytes is served for eight lanes at a time, which then use all 32 banks once if
//
//   - they have chunks i and i + 4 of depths d to d + 3, as the tensor cores' fragments are read (tensorcore.cuh),
//   - they have eight chunks of one depth, as the CUDA cores read b, and as 16-byte copies write.
//
// An access of 4 bytes is free of conflicts if the 32 lanes have one chunk of eight depths, as
// operands with contiguous depth are written.
//
// Copies of 4 bytes are slow: a warp's took some 15 cycles on an H100. So a matrix whose depth is
// contiguous and a multiple of four is copied in deep chunks, four depths of one row: each thread
// copies some of them to arbitrary places in the stage and, when they have arrived, transposes them
// into their final places.
#pragma once

#include "pollen.cuh"

namespace pollen {

// Vector is loaded and stored with one instruction, of 16 bytes at most.
template <class T, int n>
struct alignas(n * sizeof(T) < 16 ? n * sizeof(T) : 16) Vector {
  T v[n];
};

// Line is the element type of dynamic shared memory; it aligns it to 16 bytes.
using Line = Vector<float, 4>;

INLINE void copyWord(float* to, const float* from, bool there) { copyAsync4(to, from, there); }
INLINE void copyChunk(float* to, const float* from, bool there) { copyAsync16(to, from, there); }
INLINE void loadChunk(float* to, const float* from, bool there) { loadIf4(there, from, to); }
INLINE void loadChunk(double* to, const double* from, bool there) {
#pragma unroll
  for (int j = 0; j < 4; j++) to[j] = loadIf(there, from + j);
}

// StageOf is one operand's part of a stage, of which each thread copies count numbers, in one of
// the thread layouts below. A block may have several groups of threads threads, each with its own
// stages.
template <int side_, int depth_, int threads_, int groups = 1>
struct StageOf {
  static constexpr int side = side_, depth = depth_, threads = threads_, count = side * depth / threads;
  static_assert(side % 32 == 0 && depth % 8 == 0 && count % 4 == 0, "eight chunks to a depth, a chunk to a thread");

  // Coord is an element's position along the side and the depth, split into the thread's first
  // position (x, d) and the distance to its i-th one (acrossX, acrossD), a compile-time constant.
  // The two have no bit of the depth in common, so that the swizzle of the sum is the XOR of the
  // two.
  struct Coord {
    unsigned x, d;
    int acrossX, acrossD;

    // offset returns the element's index in the stage: the swizzle permutes the chunks of a depth,
    // that is, bits 2 to 4 of x.
    INLINE int offset() const {
      unsigned bank = x + acrossX % 32 ^ d % 8 * 4 ^ acrossD % 8 * 4;
      return d * side + bank + acrossD * side + acrossX / 32 * 32;
    }
  };

  // thread returns the thread's number in its group.
  static INLINE unsigned thread() { return groups > 1 ? opaque(threadIdx.x) % threads : opaque(threadIdx.x); }

  // alongSide is the layout where a warp's lanes are neighbours along the side.
  static INLINE Coord alongSide(unsigned thread, int i) {
    static_assert(threads % side == 0, "a thread has one place along the side");
    return {thread % side, thread / side % (threads / side), 0, i * (threads / side)};
  }

  // alongDepth is the layout where a warp's lanes are four neighbours along the side by eight in
  // depth.
  static INLINE Coord alongDepth(unsigned thread, int i) {
    constexpr int eights = depth / 8, warps = threads / 32 / eights;
    static_assert(threads % (32 * eights) == 0 && 32 % (4 * warps) == 0, "a thread has one depth of each stage");
    return {thread / 32 / eights % warps * 4 + thread % 32 / 8, thread / 32 % eights * 8 + thread % 8, i * warps * 4, 0};
  }

  // deepChunk is the first of four depths at one position along the side. cp.async writes the chunk
  // to rawOffset; later all threads move its numbers to their final places.
  static INLINE Coord deepChunk(unsigned thread, int i) {
    static_assert(depth == 16 && threads % 64 == 0, "a row has four chunks");
    return {thread % 32 / 2 + thread / 64 * 16, thread % 2 * 4 + thread / 32 % 2 * 8, i * (threads / 4), 0};
  }
  static INLINE int rawOffset(unsigned thread, int i) { return 4 * (thread + i * threads); }

  // chunk is the layout of 16-byte copies: the first of four neighbours along the side.
  static INLINE Coord chunk(unsigned thread, int i) {
    constexpr int chunks = side / 4, step = threads / chunks;
    static_assert(threads % chunks == 0, "a thread has one chunk of each depth");
    return {thread % chunks * 4, thread / chunks % step, 0, i * step};
  }
};

// An operand of a product is a type with
//
//     begin(x)                 called first, with the tile's first row of a, or first column of b
//     advance(k, end, i)       prepares stage i, 0 or 1, with the depths k ... end - 1; a barrier follows
//     inChunks()               reports whether all chunks are contiguous in memory
//     chunks<Stage>(k, i, f)   calls f(number, offset, address, inside) for each of a thread's chunks
//     words<Stage, numbered>(k, i, f)
//                              the same for each of a thread's numbers; numbered makes number a
//                              compile-time constant
//
// k is the first depth of stage i. inside is whether the element is in the operand.
template <class T>
struct Matrix;

// mayBeDeep is whether an operand has deep chunks: it has inDeepChunks() and deepChunks().
template <class Operand>
constexpr bool mayBeDeep = false;
template <class T>
constexpr bool mayBeDeep<Matrix<T>> = true;

// copy issues the cp.async copies of a stage. If deep is set, the operand is a matrix that may use
// deep chunks.
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

// TransposedChunks moves a thread's deep chunks from where cp.async wrote them to their final
// places. A barrier must come between load and store, and one after store.
template <class Stage, class T>
struct TransposedChunks {
  Vector<T, 4> v[Stage::count / 4];

  // load reads the chunks that this thread copied.
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

// RegisterStage carries a thread's part of a stage through registers, before sm_80.
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

// Matrix is an operand in memory: [depth, extent], or [extent, depth] if alongDepth.
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

  // words covers both layouts: across is the distance of neighbours along the side, down that of
  // neighbours in depth.
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
