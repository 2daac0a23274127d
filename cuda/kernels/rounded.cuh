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
// Eight depths are in the order 0, 4, 1, 5, 2, 6, 3, 7, which is that of tensorcore.cuh, so that
// the sums are, too.
#pragma once

#include "affine.cuh"
#include "product.cuh"

namespace pollen {

constexpr int roundedDepth = 32;  // of a stage

// thisThread is threadIdx.x, from which the compiler computes addresses again in each round: kept
// in registers, they would not leave enough of these.
INLINE unsigned thisThread() { return opaque(threadIdx.x); }

// swapped returns the r-th of eight depths in the order of the sum.
INLINE unsigned swapped(unsigned r) { return r % 2 * 4 + r / 2; }

// An operand is a type with
//
//     begin(item, j, k, end)          called first
//     copy(item, j, k, end, raw)      starts the copies of an item at depths k to end - 1
//     ahead(item, j, k, end)          prepares the next copy of the item
//     round(item, k, raw, to)         rounds an item into a stage
//
// first is the tile's first row or column, and j the item's number among those of its warp.

// DeepFloats is an operand [extent, depth] of which a tile has side rows from first on.
template <int side>
struct DeepFloats {
  static constexpr bool transposed = false;
  static constexpr int itemBytes = 1024;
  const float* data;
  int extent, depth, first;

  INLINE void begin(int, int, int, int) const {}
  INLINE void ahead(int, int, int, int) const {}

  // Eight lanes copy the 128 bytes of a row, whose chunks are exchanged in pairs in odd rows.
  INLINE void copy(int item, int, int k, int end, char* raw) const {
    unsigned lane = thisThread() % 32, row = lane / 8, chunk = lane % 8, x = first + 8 * item + row;
    const float* from = data + x * depth + k + 4 * chunk;
    bool inside = k + 4 * chunk < end;
    char* to = raw + row * 128 + (chunk ^ row % 2) * 16;
#pragma unroll
    for (int j = 0; j < 2; j++) copyAsync16(to + 512 * j, from + 4 * j * depth, inside && x + 4 * j < extent);
  }

  // round rounds eight depths of a row.
  INLINE void round(int item, int, const char* raw, char* to) const {
    unsigned lane = thisThread() % 32, row = lane / 4, eight = lane % 4;
    auto load = [&](unsigned chunk) INLINED { return *(const Vector<float, 4>*)(raw + row * 128 + (chunk ^ row % 2) * 16); };
    Vector<float, 4> low = load(2 * eight), high = load(2 * eight + 1);
    Vector<unsigned, 4> words;
#pragma unroll
    for (int i = 0; i < 4; i++) words.v[i] = packBF16(low.v[i], high.v[i]);
    *(Vector<unsigned, 4>*)(to + (8 * item + row) * 64 + (eight ^ row / 2 % 4) * 16) = words;
  }
};

// WideFloats is an operand [depth, extent], of which a tile has side columns from first on.
template <int side>
struct WideFloats {
  static constexpr bool transposed = true;
  static constexpr int itemBytes = 1024, across = side / 4, down = 32 / across;  // lanes along the side, and in depth
  const float* data;
  int extent, depth, first;

  static INLINE int depthOf(int item, unsigned lane) { return item * (256 / side) + lane / across; }

  INLINE void begin(int, int, int, int) const {}
  INLINE void ahead(int, int, int, int) const {}

  // A lane copies four columns at two depths.
  INLINE void copy(int item, int, int k, int end, char* raw) const {
    unsigned lane = thisThread() % 32, x = first + lane % across * 4, d = k + depthOf(item, lane);
    const float* from = data + d * extent + x;
    bool inside = x < extent;
#pragma unroll
    for (int j = 0; j < 2; j++) copyAsync16(raw + 16 * lane + 512 * j, from + j * down * extent, inside && d + j * down < end);
  }

  INLINE void round(int item, int, const char* raw, char* to) const {
    unsigned lane = thisThread() % 32, x = lane % across;
#pragma unroll
    for (int j = 0; j < 2; j++) {
      Vector<float, 4> v = *(const Vector<float, 4>*)(raw + 16 * lane + 512 * j);
      int d = depthOf(item, lane) + j * down;
      *(Vector<unsigned, 2>*)(to + d * 2 * side + (x / 2 ^ d % 8) * 16 + x % 2 * 8) = {packBF16(v.v[0], v.v[1]), packBF16(v.v[2], v.v[3])};
    }
  }
};

// Images are the images of a step's batch in the data set. Both pixels and places in a plane of
// eight neighbouring pixels are multiples of eight.
struct Images {
  const unsigned char* data;
  const int* examples;  // of the batch
  int batch, pixels;
  Affine<float> affine;

  // number returns the i-th of four bytes as a number. scale and shift are those of their plane.
  static INLINE float number(unsigned bytes, int i, float scale, float shift) { return float(bytes >> 8 * i & 255) * scale + shift; }
};

// DeepImages is an operand [batch, pixels], of which a tile has side images from first on. A warp
// has count items.
template <int side, int count>
struct DeepImages {
  static constexpr bool transposed = false;
  static constexpr int itemBytes = 256;
  Images images;
  int first = 0, example[count] = {};

  // Half of a warp's lanes copy, two to the 32 bytes of an image.
  static INLINE unsigned row() { return thisThread() % 32 / 2; }
  INLINE void ahead(int, int, int, int) const {}
  INLINE void begin(int item, int j, int, int) {
    unsigned x = first + 8 * item + row();
    example[j] = row() < 8 && x < images.batch ? images.examples[x] : -1;
  }
  INLINE void copy(int, int j, int k, int end, char* raw) const {
    unsigned lane = thisThread() % 32, at = k + lane % 2 * 16;
    if (row() < 8) copyAsync16(raw + 16 * lane, images.data + (long long)example[j] * images.pixels + at, at < end && example[j] >= 0);
  }

  INLINE void round(int item, int k, const char* raw, char* to) const {
    unsigned lane = thisThread() % 32, row = lane / 4, eight = lane % 4;
    Vector<unsigned, 2> bytes = *(const Vector<unsigned, 2>*)(raw + 8 * lane);
    float scale = images.affine.scale(k + 8 * eight), shift = images.affine.shift(k + 8 * eight);
    Vector<unsigned, 4> words;
#pragma unroll
    for (int i = 0; i < 4; i++) words.v[i] = packBF16(Images::number(bytes.v[0], i, scale, shift), Images::number(bytes.v[1], i, scale, shift));
    *(Vector<unsigned, 4>*)(to + (8 * item + row) * 64 + (eight ^ row / 2 % 4) * 16) = words;
  }
};

// WideImages is an operand [batch, pixels] whose depth is the batch: a tile has side pixels from
// first on. A warp has count items.
template <int side, int count>
struct WideImages {
  static constexpr bool transposed = true;
  static constexpr int itemBytes = 256, chunks = side / 16, across = side / 4, down = 32 / across;
  Images images;
  int first = 0, example[count] = {};

  static INLINE int depthOf(int item) { return item * (256 / side) + thisThread() % 32 / chunks; }

  // ahead looks up, a stage ahead, the example that a lane will copy.
  INLINE void begin(int item, int j, int k, int end) { ahead(item, j, k, end); }
  INLINE void ahead(int item, int j, int k, int end) {
    int d = k + depthOf(item);
    example[j] = thisThread() % 32 < 16 && d < end ? images.examples[d] : -1;
  }
  INLINE void copy(int, int j, int, int, char* raw) const {
    unsigned lane = thisThread() % 32, x = first + lane % chunks * 16;
    if (lane < 16) copyAsync16(raw + 16 * lane, images.data + (long long)example[j] * images.pixels + x, x < images.pixels && example[j] >= 0);
  }

  // round rounds four pixels at two depths. The last depths of a slice may have no image: there the
  // other operand is zero.
  INLINE void round(int item, int, const char* raw, char* to) const {
    unsigned lane = thisThread() % 32, x = lane % across, pixel = first + 4 * x;
    float scale = images.affine.scale(pixel), shift = images.affine.shift(pixel);
#pragma unroll
    for (int j = 0; j < 2; j++) {
      unsigned bytes = *(const unsigned*)(raw + 4 * lane + 128 * j), d = item * (256 / side) + lane / across + j * down;
      auto number = [&](int i) INLINED { return Images::number(bytes, i, scale, shift); };
      char* place = to + d * 2 * side + (x / 2 ^ d % 8) * 16 + x % 2 * 8;
      *(Vector<unsigned, 2>*)place = {packBF16(number(0), number(1)), packBF16(number(2), number(3))};
    }
  }
};

// RoundedTile is the output tile of a block: rows x columns sums, of which each warp has 32 x 32.
// blocks is how many a multiprocessor holds at once.
template <int rows_, int columns_, int stages_, int blocks_>
struct RoundedTile {
  static constexpr int rows = rows_, columns = columns_, stages = stages_, blocks = blocks_;
  static constexpr int across = columns / 32, threads = rows / 32 * columns, all = threads, groups = 1, passes = 1, passRows = rows;
  static constexpr int warps = threads / 32, bytes = 2 * roundedDepth * (rows + columns);  // of a rounded stage

  // sumAt returns the index of a sum in shared memory. The XOR puts the elements that four rows
  // write at once into different banks.
  static INLINE int sumAt(int row, int column) { return row * columns + (column ^ row % 4 * 8); }

  struct Sums {
    float v[2][4][4];

    INLINE void clear() {
#pragma unroll
      for (int i = 0; i < 32; i++) v[i / 16][i / 4 % 4][i % 4] = 0;
    }

    // add adds the sums of another slice behind these.
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

  // itemsOf is how many items of a side a warp has, at most. forItems calls f(item, j) for each.
  static constexpr int itemsOf(int side) { return (side / 8 + warps - 1) / warps; }
  template <int side, class F>
  static INLINE void forItems(F f) {
    constexpr int items = side / 8;
#pragma unroll
    for (int i = 0; i < items; i += warps)
      if (items % warps == 0 || threadIdx.x / 32 < items - i) f(i + thisThread() / 32, i / warps);
  }

  // run computes the tile of block blockIdx.x.
  template <class A, class B>
  static INLINE void run(A a, B b, Output<float> out, Slices slices, char* memory) {
    constexpr int rawRows = rows / 8 * A::itemBytes, rawBytes = rawRows + columns / 8 * B::itemBytes;
    int down = (out.rows + rows - 1) / rows;
    a.first = blockIdx.x % down * rows;
    b.first = blockIdx.x / down * columns;
    bool split = gridDim.y > 1;
    if (split) out.data += (long long)blockIdx.y * out.rows * out.columns;
    int begin = split ? blockIdx.y * slices.each : 0, end = split ? minInt(begin + slices.each, slices.depth) : slices.depth;
    int rounds = (end - begin + roundedDepth - 1) / roundedDepth, perSlice = slices.each / roundedDepth;
    auto copy = [&](int round, int slot) INLINED {
      if (round < rounds) {
        int k = begin + round * roundedDepth;
        char* raw = memory + slot * rawBytes;
        forItems<rows>([&](int item, int j) INLINED {
          a.copy(item, j, k, end, raw + item * A::itemBytes);
          a.ahead(item, j, k + roundedDepth, end);
        });
        forItems<columns>([&](int item, int j) INLINED {
          b.copy(item, j, k, end, raw + rawRows + item * B::itemBytes);
          b.ahead(item, j, k + roundedDepth, end);
        });
      }
      copyAsyncCommit();
    };
    forItems<rows>([&](int item, int j) INLINED { a.begin(item, j, begin, end); });
    forItems<columns>([&](int item, int j) INLINED { b.begin(item, j, begin, end); });
#pragma unroll
    for (int s = 0; s < stages; s++) copy(s, s);
    char* rounded = memory + stages * rawBytes;
    unsigned warp = threadIdx.x / 32;
    Fragments<rows, A::transposed, false> left(warp / across * 32);
    Fragments<columns, B::transposed, true> right(warp % across * 32);
    Sums sums, total;
    sums.clear();
    total.clear();
    int slot = 0, open = minInt(perSlice, rounds);
    for (int round = 0; round < rounds; round++) {
      copyAsyncWait<stages - 1>();
      warpBarrier();  // all lanes' copies have arrived
      int k = begin + round * roundedDepth;
      char *raw = memory + slot * rawBytes, *stage = rounded + round % 2 * bytes, *other = stage + 2 * roundedDepth * rows;
      forItems<rows>([&](int item, int) INLINED { a.round(item, k, raw + item * A::itemBytes, stage); });
      forItems<columns>([&](int item, int) INLINED { b.round(item, k, raw + rawRows + item * B::itemBytes, other); });
      barrier();
      copy(round + stages, slot);
      slot = slot + 1 == stages ? 0 : slot + 1;
      multiply<A, B>(sums, left, right, stage);
      if (--open > 0 && round + 1 < rounds) continue;
      total.add(sums);  // the slice ends
      sums.clear();
      open = perSlice;
    }
    storeSums<RoundedTile>(total, out, a.first, b.first, true, !split, (float*)memory);
  }
};

}  // namespace pollen

// MATMUL_ROUNDED defines a kernel with the arguments of MATMUL (matmul.cuh). The shared memory is
// that of the tile's stages, or of its sums. Where an operand's depth is contiguous, the depth must
// be a multiple of four, else the operand's other extent.
#define MATMUL_ROUNDED(name, ...)                                                                                                            \
  KERNEL(name, (__VA_ARGS__::all), (__VA_ARGS__::blocks))                                                                                    \
  (Out<float> out, In<float> a, In<float> b, In<float> bias, int m, int n, int k, int transposeA, int transposeB, int epilogue, int slices,  \
   int each) {                                                                                                                               \
    using Tile = __VA_ARGS__;                                                                                                                \
    DYNAMIC_SHARED(Line, memory);                                                                                                            \
    DeepFloats<Tile::rows> deepA = {a.at(), m, k};                                                                                           \
    WideFloats<Tile::rows> wideA = {a.at(), m, k};                                                                                           \
    DeepFloats<Tile::columns> deepB = {b.at(), n, k};                                                                                        \
    WideFloats<Tile::columns> wideB = {b.at(), n, k};                                                                                        \
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
  KERNEL(name, (__VA_ARGS__::all), (__VA_ARGS__::blocks))                                                                                    \
  (Out<float> out, In<float> other, In<unsigned char> images, In<int> examples, In<float> bias, int m, int n, int k, int transposeA,         \
   int epilogue, int slices, int each, AFFINE(float)) {                                                                                      \
    using Tile = __VA_ARGS__;                                                                                                                \
    DYNAMIC_SHARED(Line, memory);                                                                                                            \
    Images pixels = {images.at(), examples.at(), transposeA ? k : m, transposeA ? n : k, AFFINE_OF(float)};                                  \
    Output<float> to = {out.at(), bias.at(), m, n, n, n, 0, epilogue};                                                                       \
    Slices of = {k, slices, each};                                                                                                           \
    if (transposeA)                                                                                                                          \
      Tile::run(WideFloats<Tile::rows>{other.at(), m, k}, WideImages<Tile::columns, Tile::itemsOf(Tile::columns)>{pixels}, to, of,           \
                (char*)memory);                                                                                                              \
    else                                                                                                                                     \
      Tile::run(DeepImages<Tile::rows, Tile::itemsOf(Tile::rows)>{pixels}, DeepFloats<Tile::columns>{other.at(), n, k}, to, of,              \
                (char*)memory);                                                                                                              \
  }
