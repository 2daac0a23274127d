// A tile of a product on the tensor cores, from sm_80 on: the operands are rounded on their way to shared memory, the sums are float32.
//
// Shared memory holds 32-bit words, one number of tf32, or two of bf16 that are neighbours in depth. In words, both kinds have the same
// fragments: with group = lane / 4 and pair = lane % 4, a lane brings of a 16 x 8 words of a the rows group and group + 8 at the words pair and
// pair + 4, of 8 words x 8 of b the column group at the same words, and has of 16 x 8 sums the columns 2 pair and 2 pair + 1 of its two rows.
#pragma once

#include "product.cuh"

namespace pollen {

// TF32 has ten bits of fraction, and float32's exponent.
struct TF32 {
  static constexpr int depths = 1;
  static INLINE unsigned pack(const float* v) { return roundTF32(v[0]); }
  static INLINE void multiply(float* d, const unsigned* a, const unsigned* b) { mmaTF32_16x8x8(d, a, b); }
};

// BF16 has seven bits of fraction, and float32's exponent.
struct BF16 {
  static constexpr int depths = 2;
  static INLINE unsigned pack(const float* v) { return packBF16(v[0], v[1]); }
  static INLINE void multiply(float* d, const unsigned* a, const unsigned* b) { mmaBF16_16x8x16(d, a, b); }
};

// Words is shared memory by words of depth. A word's column is turned by its quad of words, so that 32 threads meet 32 banks in each of the three
// ways they go. The bank is 8 (word % 4) + (x ^ turn(quad)), and
//   - a fragment is 4 words of a quad at 8 neighbouring x: 8 (word % 4) tells the words apart,
//   - a store across the depth is 32 neighbouring x of a word,
//   - a store along the depth is 16 words at 2 neighbouring x: the turn's bits 1 and 2 tell the quads apart.
template <class Number>
struct Words {
  using Value = float;
  using Word = unsigned;
  static constexpr int depths = Number::depths, pad = 8;
  static INLINE int turn(int quad) { return quad % 4 * 10; }
  static INLINE int place(int side, int word, int x) { return word * (side + pad) + (x ^ turn(word / 4)); }
  static INLINE unsigned pack(const float* v) { return Number::pack(v); }
};

// TensorTile is a block's share: rows x columns sums, of which each warp has warpRows x warpColumns; all are multiples of 32.
template <class Number, int rows_, int columns_, int warpRows, int warpColumns>
struct TensorTile {
  using Layout = Words<Number>;
  static constexpr int rows = rows_, columns = columns_, words = 16, depth = words * Number::depths;
  static constexpr int across = columns / warpColumns, threads = 32 * across * (rows / warpRows);
  static constexpr int leftPitch = rows + Layout::pad, rightPitch = columns + Layout::pad;
  static constexpr int rightHalf = words * leftPitch, stage = rightHalf + words * rightPitch;

  static constexpr int passes = warpRows / 16, passRows = rows / passes;

  // rowOf is the tile's row that row y of a pass is.
  static INLINE int rowOf(int pass, int y) { return y / 16 * warpRows + 16 * pass + y % 16; }

  struct Sums {
    float v[warpRows / 16][warpColumns / 8][4];

    static INLINE int warpRow() { return threadIdx.x / 32 / across * warpRows; }
    static INLINE int warpColumn() { return threadIdx.x / 32 % across * warpColumns; }
    static INLINE int group() { return threadIdx.x % 32 / 4; }
    static INLINE int pair() { return threadIdx.x % 4; }

    INLINE void clear() {
#pragma unroll
      for (int i = 0; i < warpRows / 16; i++)
#pragma unroll
        for (int j = 0; j < warpColumns / 8; j++)
#pragma unroll
          for (int k = 0; k < 4; k++) v[i][j][k] = 0;
    }

    // word is a lane's word of a quad at x = base + group + 8 n: the turn of base, a multiple of 32, and of 8 n is known beforehand.
    template <int pitch>
    static INLINE unsigned word(const unsigned* stage, int base, int quad, int n) {
      int turn = Layout::turn(quad);
      return stage[pair() * pitch + base + (group() ^ (turn & 7)) + 4 * quad * pitch + (8 * n ^ (turn & 24))];
    }

    INLINE void add(const unsigned* a, const unsigned* b) {
#pragma unroll
      for (int quad = 0; quad < words / 4; quad += 2) {
        unsigned left[warpRows / 16][4], right[warpColumns / 8][2];
#pragma unroll
        for (int i = 0; i < warpRows / 16; i++)
#pragma unroll
          for (int k = 0; k < 4; k++) left[i][k] = word<leftPitch>(a, warpRow(), quad + k / 2, 2 * i + k % 2);
#pragma unroll
        for (int j = 0; j < warpColumns / 8; j++)
#pragma unroll
          for (int k = 0; k < 2; k++) right[j][k] = word<rightPitch>(b, warpColumn(), quad + k, j);
#pragma unroll
        for (int i = 0; i < warpRows / 16; i++)
#pragma unroll
          for (int j = 0; j < warpColumns / 8; j++) Number::multiply(v[i][j], left[i], right[j]);
      }
    }

    // write puts 16 rows of each warp's into memory, those of the warps above each other.
    INLINE void write(float* memory, int pitch, int pass) const {
      float* corner = memory + (warpRow() / warpRows * 16 + group()) * pitch + warpColumn() + 2 * pair();
#pragma unroll
      for (int j = 0; j < warpColumns / 8; j++)
#pragma unroll
        for (int k = 0; k < 2; k++) *(Vector<float, 2>*)(corner + 8 * k * pitch + 8 * j) = {v[pass][j][2 * k], v[pass][j][2 * k + 1]};
    }
  };
};

}  // namespace pollen
