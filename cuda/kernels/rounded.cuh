// Products of matrices in bf16 whose operands are rounded once (sm_80), for many blocks: out(m, n)
// = sum over k of a(m, k) b(k, n), with the slices and the epilogue of product.cuh and the bits of
// the tiles of tensorcore.cuh.
//
// Such a product takes the time of its bytes, so what counts is how many of them are under way.
// cp.async copies them as they are to raw stages, of 32 depths, a few stages ahead. A warp then
// rounds what it has copied itself into one of two rounded stages, from which all warps read the
// fragments of mma.sync by ldmatrix. So there is one barrier per stage.
//
// A warp copies and rounds items of 256 numbers, eight to a lane:
//
//   - Where the depth is contiguous, an item is eight rows of all 32 depths. A rounded stage is
//     [side, depth], 64 bytes to a row, whose 16 bytes c are at place c ^ row / 2 % 4.
//   - Where the side is contiguous, it is all of the side at some depths. A rounded stage is
//     [depth, side], whose 16 bytes c are at place c ^ depth % 8, and ldmatrix transposes.
//
// Both put eight lanes that are served together into different banks.
//
// An operand may also be the step's images, which the kernel then reads from the data set, a byte a
// pixel, instead of a copy in float32 that another kernel has gathered.
//
// Each eight depths are stored in the order 0, 4, 1, 5, 2, 6, 3, 7, as in tensorcore.cuh, so that
// sums have the same order and the same bits.
#pragma once

#include "roundedoperands.cuh"

namespace pollen {

// RoundedTile is the output tile of a block: rows x columns sums, of which each warp has 32 x 32.
// stages is the number of raw stages, and blocks how many blocks a multiprocessor holds at once.
template <int rows_, int columns_, int stages_, int blocks_>
struct RoundedTile {
  static constexpr int rows = rows_, columns = columns_, stages = stages_, blocks = blocks_;
  static constexpr int across = columns / 32, threads = rows / 32 * columns, warps = threads / 32;
  static constexpr int bytes = 2 * roundedDepth * (rows + columns);  // of a rounded stage
  static constexpr int all = threads, groups = 1, passes = 1, passRows = rows;

  // sumAt returns the index of a sum in shared memory. The XOR puts the elements that four rows
  // write at once into different banks.
  static INLINE int sumAt(int row, int column) { return row * columns + (column ^ row % 4 * 8); }

  struct Sums {
    float v[2][4][4];

    INLINE void clear() {
#pragma unroll
      for (int i = 0; i < 32; i++) v[i / 16][i / 4 % 4][i % 4] = 0;
    }

    // add adds the sums of another slice to these.
    INLINE void add(const Sums& other) {
#pragma unroll
      for (int i = 0; i < 32; i++) v[i / 16][i / 4 % 4][i % 4] += other.v[i / 16][i / 4 % 4][i % 4];
    }

    INLINE void write(float* memory, int) const {
      unsigned warp = threadIdx.x / 32, lane = threadIdx.x % 32, row = warp / across * 32 + lane / 4, column = warp % across * 32 + lane % 4 * 2;
#pragma unroll
      for (int i = 0; i < 4; i++)
#pragma unroll
        for (int j = 0; j < 4; j++) {
          const float* two = v[i / 2][j] + i % 2 * 2;
          *(Vector<float, 2>*)(memory + sumAt(row + 8 * i, column + 8 * j)) = {two[0], two[1]};
        }
    }
  };

  // Fragments loads a warp's fragments of an operand, 16 rows or columns by 16 depths: four words,
  // of the first and the second eight of the side, at the first and the second eight depths. In
  // those of the left operand the side changes first, as mma expects, in those of the right one the
  // depth, so that each half is the operand of a product.
  template <int side, bool transposed, bool right>
  struct Fragments {
    unsigned at;

    INLINE explicit Fragments(int begin) {
      unsigned lane = threadIdx.x % 32, r = lane % 8, first = lane / 8 % 2, second = lane / 16;
      unsigned half = right ? second : first, deep = right ? first : second;
      if (transposed)
        at = (8 * deep + swapped(r)) * 2 * side + (begin / 8 + half ^ swapped(r)) * 16;
      else
        at = (begin + 8 * half + r) * 64 + (deep ^ r / 2) * 16;
    }

    // load loads the sixteen from 16 i on, at depths from 16 k on.
    INLINE void load(unsigned (&words)[4], char* stage, int i, int k) const {
      if (transposed)
        ldmatrixX4Trans(words, stage, (at ^ i * 32) + k * 16 * 2 * side);
      else
        ldmatrixX4(words, stage, (at ^ k * 32) + i * 16 * 64);
    }
  };

  // multiply adds the products of a rounded stage.
  template <class A, class B>
  static INLINE void multiply(Sums& sums, const Fragments<rows, A::transposed, false>& a, const Fragments<columns, B::transposed, true>& b,
                              char* stage) {
#pragma unroll
    for (int k = 0; k < 2; k++) {
      unsigned left[4], right[2][4];
#pragma unroll
      for (int j = 0; j < 2; j++) b.load(right[j], stage + 2 * roundedDepth * rows, j, k);
#pragma unroll
      for (int i = 0; i < 2; i++) {
        a.load(left, stage, i, k);
#pragma unroll
        for (int j = 0; j < 4; j++) mmaBF16_16x8x16(sums.v[i][j], left, right[j / 2] + j % 2 * 2);
      }
    }
  }

  // run computes the tile of block blockIdx.x.
  template <class A, class B>
  static INLINE void run(A a, B b, Output<float> out, Slices slices, char* memory) {
    constexpr int rawRows = rows / 8 * A::itemBytes, rawBytes = rawRows + columns / 8 * B::itemBytes;
    int down = (out.rows + rows - 1) / rows;
    int row = blockIdx.x % down * rows, column = blockIdx.x / down * columns;
    bool split = gridDim.y > 1;
    if (split) out.data += (long long)blockIdx.y * out.rows * out.columns;
    int begin = split ? blockIdx.y * slices.each : 0, end = split ? minInt(begin + slices.each, slices.depth) : slices.depth;
    int rounds = (end - begin + roundedDepth - 1) / roundedDepth, perSlice = slices.each / roundedDepth;
    auto copy = [&](int round, int slot) INLINED {
      if (round < rounds) {
        int k = begin + round * roundedDepth;
        char* raw = memory + slot * rawBytes;
        a.copy(raw, k);
        b.copy(raw + rawRows, k);
      }
      copyAsyncCommit();
    };
    a.begin(row, begin, end);
    b.begin(column, begin, end);
#pragma unroll
    for (int s = 0; s < stages; s++) copy(s, s);
    char* rounded = memory + stages * rawBytes;
    unsigned warp = threadIdx.x / 32;
    Fragments<rows, A::transposed, false> left(warp / across * 32);
    Fragments<columns, B::transposed, true> right(warp % across * 32);
    Sums sums, total;
    sums.clear();
    total.clear();
    int slot = 0, open = perSlice;
    for (int round = 0, half = 0; round < rounds; round++, half ^= 1) {
      copyAsyncWait<stages - 1>();
      warpBarrier();  // all lanes' copies have arrived
      char *raw = memory + slot * rawBytes, *stage = rounded + half * bytes;
      int k = begin + round * roundedDepth;
      a.round(raw, stage, k);
      b.round(raw + rawRows, stage + 2 * roundedDepth * rows, k);
      barrier();
      copy(round + stages, slot);
      slot = slot + 1 == stages ? 0 : slot + 1;
      multiply<A, B>(sums, left, right, stage);
      if (--open == 0) {
        total.add(sums);  // the slice ends
        sums.clear();
        open = perSlice;
      }
    }
    if (open < perSlice) total.add(sums);
    storeSums<RoundedTile>(total, out, row, column, true, !split, (float*)memory);
  }
};

}  // namespace pollen

// MATMUL_ROUNDED defines a kernel with the arguments of MATMUL (matmul.cuh). The shared memory is
// that of the tile's stages. Where an operand's depth is contiguous, the depth must be a multiple
// of four, else the operand's other extent.
#define MATMUL_ROUNDED(name, ...)                                                                                                            \
  KERNEL(name, (__VA_ARGS__::threads), (__VA_ARGS__::blocks))                                                                                \
  (Out<float> out, In<float> a, In<float> b, In<float> bias, int m, int n, int k, int transposeA, int transposeB, int epilogue, int slices,  \
   int each) {                                                                                                                               \
    using Tile = __VA_ARGS__;                                                                                                                \
    DYNAMIC_SHARED(Line, memory);                                                                                                            \
    DeepFloats<Tile::rows, Tile::warps> deepA = {a.at(), m, k};                                                                              \
    WideFloats<Tile::rows, Tile::warps> wideA = {a.at(), m, k};                                                                              \
    DeepFloats<Tile::columns, Tile::warps> deepB = {b.at(), n, k};                                                                           \
    WideFloats<Tile::columns, Tile::warps> wideB = {b.at(), n, k};                                                                           \
    Output<float> to = {out.at(), bias.at(), m, n, n, n, 0, epilogue};                                                                       \
    Slices of = {k, slices, each};                                                                                                           \
    if (!transposeA && transposeB)                                                                                                           \
      Tile::run(deepA, deepB, to, of, (char*)memory);                                                                                        \
    else if (!transposeA)                                                                                                                    \
      Tile::run(deepA, wideB, to, of, (char*)memory);                                                                                        \
    else if (transposeB)                                                                                                                     \
      Tile::run(wideA, deepB, to, of, (char*)memory);                                                                                        \
    else                                                                                                                                     \
      Tile::run(wideA, wideB, to, of, (char*)memory);                                                                                        \
  }

// MATMUL_ROUNDED_IMAGES defines a kernel one of whose operands is the step's images: a [M K], times
// the other one [N K], or, with transposeA, b [K N], times the other one [K M].
#define MATMUL_ROUNDED_IMAGES(name, ...)                                                                                                     \
  KERNEL(name, (__VA_ARGS__::threads), (__VA_ARGS__::blocks))                                                                                \
  (Out<float> out, In<float> other, In<unsigned char> images, In<int> examples, In<float> bias, int m, int n, int k, int transposeA,         \
   int epilogue, int slices, int each, AFFINE(float)) {                                                                                      \
    using Tile = __VA_ARGS__;                                                                                                                \
    DYNAMIC_SHARED(Line, memory);                                                                                                            \
    Images pixels = {images.at(), examples.at(), transposeA ? k : m, transposeA ? n : k, AFFINE_OF(float)};                                  \
    Output<float> to = {out.at(), bias.at(), m, n, n, n, 0, epilogue};                                                                       \
    Slices of = {k, slices, each};                                                                                                           \
    if (transposeA)                                                                                                                          \
      Tile::run(WideFloats<Tile::rows, Tile::warps>{other.at(), m, k}, WideImages<Tile::columns, Tile::warps>{pixels}, to, of,\
                (char*)memory);                                                                                                              \
    else                                                                                                                                     \
      Tile::run(DeepImages<Tile::rows, Tile::warps>{pixels}, DeepFloats<Tile::columns, Tile::warps>{other.at(), n, k}, to, of,               \
                (char*)memory);                                                                                                              \
  }
