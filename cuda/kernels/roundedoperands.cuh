// The operands of products that round once (rounded.cuh): how they are copied to shared memory and
// rounded there.
#pragma once

#include "affine.cuh"
#include "product.cuh"

namespace pollen {

constexpr int roundedDepth = 32;  // of a stage

// swapped returns the r-th of eight depths in the order of the sum.
INLINE unsigned swapped(unsigned r) { return r % 2 * 4 + r / 2; }

// An operand is a type with
//
//     begin(first, k, end)     called first: of the tile's first row or column, and the depths
//     copy(raw, k)             starts the copies of the stage at depth k, each 32 further on
//     round(raw, to, k)        rounds what the warp has copied
//
// side is the tile's number of rows or columns, and warps is the block's number of warps. A warp has
// count items, warps apart. begin computes what only depends on the thread.

// DeepFloats is an operand [extent, depth].
template <int side, int warps>
struct DeepFloats {
  static constexpr bool transposed = false;
  static constexpr int itemBytes = 1024, count = side / 8 / warps;
  static_assert(side / 8 % warps == 0, "whole items");
  const float* data;
  int extent, depth;
  int limit[2 * count];  // the depths that a lane may copy are below
  const float* from;
  unsigned to, read, write;  // places in an item, and in a stage

  // Eight lanes copy the 128 bytes of a row, whose chunks are exchanged in pairs in odd rows. A
  // lane then rounds eight depths of a row.
  INLINE void begin(int first, int k, int end) {
    unsigned warp = threadIdx.x / 32, lane = threadIdx.x % 32, chunk = lane % 8, row = lane / 8;
    int x = first + 8 * warp + row;
    from = data + (long long)x * depth + (k + 4 * chunk);
#pragma unroll
    for (int i = 0; i < 2 * count; i++) limit[i] = x + i / 2 * 8 * warps + i % 2 * 4 < extent ? end - (int)(4 * chunk) : 0;
    to = warp * itemBytes + row * 128 + (chunk ^ row % 2) * 16;
    unsigned eight = lane % 4;
    row = lane / 4;
    read = warp * itemBytes + row * 128 + (2 * eight ^ row % 2) * 16;
    write = (8 * warp + row) * 64 + (eight ^ row / 2 % 4) * 16;
  }

  INLINE void copy(char* raw, int k) {
#pragma unroll
    for (int i = 0; i < 2 * count; i++)
      copyAsync16(raw + to + i / 2 * warps * itemBytes + i % 2 * 512, from + (i / 2 * 8 * warps + i % 2 * 4) * depth, k < limit[i]);
    from += roundedDepth;
  }

  INLINE void round(const char* raw, char* stage, int) const {
#pragma unroll
    for (int j = 0; j < count; j++) {
      using Four = Vector<float, 4>;
      Four low = *(const Four*)(raw + read + j * warps * itemBytes), high = *(const Four*)(raw + (read ^ 16) + j * warps * itemBytes);
      Vector<unsigned, 4> words;
#pragma unroll
      for (int i = 0; i < 4; i++) words.v[i] = packBF16(low.v[i], high.v[i]);
      *(Vector<unsigned, 4>*)(stage + write + j * warps * 8 * 64) = words;
    }
  }
};

// Wide is the places of an operand whose side is contiguous: a lane has four neighbours along the
// side at two depths of each item.
template <int side, int warps>
struct Wide {
  static constexpr int across = side / 4, down = 32 / across;               // lanes along the side, and in depth
  static constexpr int depths = 256 / side, count = side / 8 / warps;       // depths of an item, items of a warp
  static_assert(side / 8 % warps == 0 && depths * warps % 8 == 0, "whole items, whose swizzle is the same");
  unsigned write[2];

  static INLINE unsigned x() { return threadIdx.x % 32 % across; }
  static INLINE unsigned depth() { return threadIdx.x / 32 * depths + threadIdx.x % 32 / across; }

  INLINE void begin() {
#pragma unroll
    for (int i = 0; i < 2; i++) {
      unsigned d = depth() + i * down;
      write[i] = d * 2 * side + (x() / 2 ^ d % 8) * 16 + x() % 2 * 8;
    }
  }

  // store stores four rounded numbers of depth i of item j.
  INLINE void store(char* stage, int i, int j, unsigned low, unsigned high) const {
    *(Vector<unsigned, 2>*)(stage + write[i] + j * warps * depths * 2 * side) = {low, high};
  }
};

// WideFloats is an operand [depth, extent].
template <int side, int warps>
struct WideFloats {
  static constexpr bool transposed = true;
  static constexpr int itemBytes = 1024, count = Wide<side, warps>::count;
  const float* data;
  int extent, depth;
  int limit;  // the depths that a lane may copy are below, for its first depth
  const float* from;
  unsigned to;
  Wide<side, warps> wide;

  INLINE void begin(int first, int k, int end) {
    int x = first + wide.x() * 4, d = wide.depth();
    from = data + (long long)(k + d) * extent + x;
    limit = x < extent ? end - d : 0;
    to = threadIdx.x / 32 * itemBytes + threadIdx.x % 32 * 16;
    wide.begin();
  }

  INLINE void copy(char* raw, int k) {
#pragma unroll
    for (int i = 0; i < 2 * count; i++) {
      int d = i / 2 * warps * wide.depths + i % 2 * wide.down;
      copyAsync16(raw + to + i / 2 * warps * itemBytes + i % 2 * 512, from + d * extent, k + d < limit);
    }
    from += roundedDepth * extent;
  }

  INLINE void round(const char* raw, char* stage, int) const {
#pragma unroll
    for (int i = 0; i < 2 * count; i++) {
      Vector<float, 4> v = *(const Vector<float, 4>*)(raw + to + i / 2 * warps * itemBytes + i % 2 * 512);
      wide.store(stage, i % 2, i / 2, packBF16(v.v[0], v.v[1]), packBF16(v.v[2], v.v[3]));
    }
  }
};

// Images are the images of a step's batch in the data set. Both pixels and the pixels of a plane
// are multiples of eight. Half of a warp's lanes copy, 16 bytes each.
struct Images {
  const unsigned char* data;
  const int* examples;  // of the batch
  int batch, pixels;
  Affine<float> affine;

  static INLINE bool copies() { return threadIdx.x % 32 < 16; }
  INLINE const unsigned char* at(int example, int pixel) const { return data + (long long)example * pixels + pixel; }

  // number returns the i-th of four bytes as a number. scale and shift are those of their plane.
  static INLINE float number(unsigned bytes, int i, float scale, float shift) { return float(bytes >> 8 * i & 255) * scale + shift; }
};

// DeepImages is an operand [batch, pixels].
template <int side, int warps>
struct DeepImages {
  static constexpr bool transposed = false;
  static constexpr int itemBytes = 256, count = side / 8 / warps;
  Images images;
  int limit[count];
  const unsigned char* from[count];
  unsigned write;

  // Two lanes copy the 32 bytes of an image.
  INLINE void begin(int first, int k, int end) {
    unsigned warp = threadIdx.x / 32, lane = threadIdx.x % 32, row = lane / 4;
    int half = lane % 2 * 16;
#pragma unroll
    for (int j = 0; j < count; j++) {
      int x = first + 8 * (warp + j * warps) + lane / 2;
      bool there = images.copies() && x < images.batch;
      from[j] = images.at(opaque(there ? images.examples[x] : 0), k + half);
      limit[j] = there ? end - half : 0;
    }
    write = (8 * warp + row) * 64 + (lane % 4 ^ row / 2 % 4) * 16;
  }

  INLINE void copy(char* raw, int k) {
#pragma unroll
    for (int j = 0; j < count; j++) {
      char* to = raw + (threadIdx.x / 32 + j * warps) * itemBytes + threadIdx.x % 32 * 16;
      if (images.copies()) copyAsync16(to, from[j], k < limit[j]);
      from[j] += roundedDepth;
    }
  }

  INLINE void round(const char* raw, char* stage, int k) const {
    int pixel = k + threadIdx.x % 4 * 8;
    float scale = images.affine.scale(pixel), shift = images.affine.shift(pixel);
#pragma unroll
    for (int j = 0; j < count; j++) {
      Vector<unsigned, 2> bytes = *(const Vector<unsigned, 2>*)(raw + 8 * threadIdx.x + j * warps * itemBytes);
      Vector<unsigned, 4> words;
#pragma unroll
      for (int i = 0; i < 4; i++) words.v[i] = packBF16(Images::number(bytes.v[0], i, scale, shift), Images::number(bytes.v[1], i, scale, shift));
      *(Vector<unsigned, 4>*)(stage + write + j * warps * 8 * 64) = words;
    }
  }
};

// WideImages is an operand [batch, pixels] whose depth is the batch.
template <int side, int warps>
struct WideImages {
  static constexpr bool transposed = true;
  static constexpr int itemBytes = 256, count = Wide<side, warps>::count, chunks = side / 16;
  Images images;
  int end, pixel;
  int example[count];  // that the lane will copy next, or -1
  float scale, shift;
  Wide<side, warps> wide;

  INLINE void begin(int first, int k, int to) {
    end = to;
    pixel = first + threadIdx.x % 32 % chunks * 16;
    scale = images.affine.scale(first + wide.x() * 4);
    shift = images.affine.shift(first + wide.x() * 4);
    wide.begin();
    lookUp(k);
  }

  // lookUp looks up the examples at depth k, a stage ahead.
  INLINE void lookUp(int k) {
#pragma unroll
    for (int j = 0; j < count; j++) {
      int d = k + (threadIdx.x / 32 + j * warps) * wide.depths + threadIdx.x % 32 / chunks;
      example[j] = images.copies() && pixel < images.pixels && d < end ? images.examples[d] : -1;
    }
  }

  INLINE void copy(char* raw, int k) {
#pragma unroll
    for (int j = 0; j < count; j++) {
      char* to = raw + (threadIdx.x / 32 + j * warps) * itemBytes + threadIdx.x % 32 * 16;
      if (images.copies()) copyAsync16(to, images.at(example[j], pixel), example[j] >= 0);
    }
    lookUp(k + roundedDepth);
  }

  // The last depths of a slice may have no image: there the other operand is zero.
  INLINE void round(const char* raw, char* stage, int) const {
#pragma unroll
    for (int i = 0; i < 2 * count; i++) {
      unsigned bytes = *(const unsigned*)(raw + threadIdx.x / 32 * itemBytes + threadIdx.x % 32 * 4 + i / 2 * warps * itemBytes + i % 2 * 128);
      auto number = [&](int n) INLINED { return Images::number(bytes, n, scale, shift); };
      wide.store(stage, i % 2, i / 2, packBF16(number(0), number(1)), packBF16(number(2), number(3)));
    }
  }
};

}  // namespace pollen
