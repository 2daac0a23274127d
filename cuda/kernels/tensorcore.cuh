// A tile of a product on the tensor cores, from sm_80 on: the operands are rounded on their way from shared memory, the sums are float32.
//
// The fragments are those of mma.m16n8k8 with tf32 and mma.m16n8k16 with bf16 (PTX ISA, "Warp-level matrix instructions"): with group = lane / 4 and
// pair = lane % 4 a lane brings of a the rows group and group + 8 at two words of depth, of b the column group at the same words, and has of the sums
// the columns 2 pair and 2 pair + 1 of its two rows. A product's sum does not care which of its depths, rows and columns go by which number,
// and so a lane has four neighbours in memory: for a and b the chunk group / 2 + 4 (group % 2) of 32 rows or columns is four of the instruction's, two
// instructions' of 16 rows, four instructions' of 8 columns. Of its depths a word of bf16 has pair and pair + 4, or those eight further on. Sums, whose
// columns are those of the groups 2 pair and 2 pair + 1, are then the chunks pair and pair + 4. The lanes that share the banks in one read have the groups
// 2 i and 2 i + 1, and so the chunks i and i + 4 of four depths (stage.cuh).
//
// Operands stay float32 in shared memory, so that they come without registers, and are rounded by each warp that reads them; what feeds a tile is the
// cache above, which gives 16 bytes where shared memory gives 128. ldmatrix wants depths side by side, as in nhwc.cuh.
#pragma once

#include "product.cuh"

namespace pollen {

// TF32 has ten bits of fraction, and float32's exponent. A word is a number, of which the tensor cores cut the other thirteen bits off. So half a unit
// of the tenth, added before, rounds to the nearest number; of two, to the one further from zero. The NaN that GPUs make, 0x7fffffff, overflows, and stays.
// Infinity stays one: the half is among the bits that are cut off. A NaN with its sign and eleven upper bits of fraction set, from 0xfffff000 on, is
// lost: no arithmetic of a GPU, of Go or of an x86 processor makes one, and to keep it takes three more instructions for each word.
// From sm_90 on that is one instruction, where cvt.rna is two, and moves to where mma wants its operands.
struct TF32 {
  static constexpr int depth = 8;
  static INLINE unsigned word(const Vector<float, 4>* v, int i, int x) {
    int number = __builtin_bit_cast(int, v[i].v[x]), rounded = (int)((unsigned)number + (1u << 12));
    return rounded > number ? rounded : number;
  }
  static INLINE void multiply(float* d, const unsigned* a, const unsigned* b) { mmaTF32_16x8x8(d, a, b); }
};

// BF16 has seven bits of fraction, and float32's exponent. A word is two numbers.
struct BF16 {
  static constexpr int depth = 16;
  static INLINE unsigned word(const Vector<float, 4>* v, int i, int x) { return packBF16(v[2 * i].v[x], v[2 * i + 1].v[x]); }
  static INLINE void multiply(float* d, const unsigned* a, const unsigned* b) { mmaBF16_16x8x16(d, a, b); }
};

// TensorTile is a block's share: rows x columns sums, of which each warp has warpRows x warpColumns; all are multiples of 32. Several groups of threads
// each have all of it, and a slice of the depth.
template <class Number, int rows_, int columns_, int stages_, int warpRows, int warpColumns, int groups_ = 1>
struct TensorTile {
  static constexpr int rows = rows_, columns = columns_, depth = 16, stages = stages_, groups = groups_;
  static constexpr int across = columns / warpColumns, threads = 32 * across * (rows / warpRows), all = threads * groups;
  static constexpr int blocks = groups > 1 ? 1 : warpRows * warpColumns > 2048 ? 2 : 3;  // of a multiprocessor, which has 65536 registers
  static constexpr int left = depth * rows, stage = depth * (rows + columns), memory = stages * stage;
  static constexpr int passes = 1, passRows = rows;
  static_assert(rows * columns <= memory, "the sums fit into the stages");

  // sumAt is where a sum lies in shared memory: two groups' rows are 16 apart.
  static INLINE int sumAt(int row, int column) { return row * columns + (column ^ row / 16 % 2 * 16); }

  struct Sums {
    float v[warpRows / 16][warpColumns / 8][4];

    // Lane is a thread's place in its block and its warp.
    struct Lane {
      unsigned warpRow, warpColumn, pair, chunk;

      INLINE Lane(unsigned thread)
          : warpRow(thread / 32 / across * warpRows), warpColumn(thread / 32 % across * warpColumns), pair(thread % 4),
            chunk(thread % 32 / 8 + thread / 4 % 2 * 4) {}
    };

    static INLINE Lane lane() { return Lane(groups > 1 ? opaque(threadIdx.x) % threads : opaque(threadIdx.x)); }

    INLINE void clear() {
#pragma unroll
      for (int i = 0; i < warpRows / 16; i++)
#pragma unroll
        for (int j = 0; j < warpColumns / 8; j++)
#pragma unroll
          for (int k = 0; k < 4; k++) v[i][j][k] = 0;
    }

    // read is a lane's part of 32 of a side, from begin on: its four rows or columns, each with two words of depth.
    template <int side>
    static INLINE void read(unsigned (&words)[4][2], const Lane& lane, const float* stage, int begin) {
      constexpr int count = Number::depth / 4;
      Vector<float, 4> v[count];
#pragma unroll
      for (int i = 0; i < count; i++) v[i] = *(const Vector<float, 4>*)(stage + (lane.pair + 4 * i) * side + begin + 4 * (lane.chunk ^ lane.pair ^ i % 2 * 4));
#pragma unroll
      for (int x = 0; x < 4; x++)
#pragma unroll
        for (int i = 0; i < 2; i++) words[x][i] = Number::word(v, i, x);
    }

    INLINE void add(const float* a, const float* b) {
      Lane lane = Sums::lane();
#pragma unroll
      for (int k = 0; k < depth; k += Number::depth) {
        unsigned right[warpColumns / 32][4][2];
#pragma unroll
        for (int j = 0; j < warpColumns / 32; j++) read<columns>(right[j], lane, b + k * columns, lane.warpColumn + 32 * j);
#pragma unroll
        for (int i = 0; i < warpRows / 32; i++) {
          unsigned four[4][2];
          read<rows>(four, lane, a + k * rows, lane.warpRow + 32 * i);
#pragma unroll
          for (int half = 0; half < 2; half++) {
            const unsigned left[4] = {four[2 * half][0], four[2 * half + 1][0], four[2 * half][1], four[2 * half + 1][1]};
#pragma unroll
            for (int j = 0; j < warpColumns / 8; j++) Number::multiply(v[2 * i + half][j], left, right[j / 4][j % 4]);
          }
        }
      }
    }

    INLINE void write(float* memory, int) const {
      Lane lane = Sums::lane();
#pragma unroll
      for (int i = 0; i < warpRows / 8; i++)
#pragma unroll
        for (int j = 0; j < warpColumns / 32; j++)
#pragma unroll
          for (int k = 0; k < 2; k++) {
            const auto& from = v[i / 2];
            int at = i % 2 * 2 + k, row = lane.warpRow + i / 4 * 32 + 4 * lane.chunk + i % 4;
            int column = lane.warpColumn + 32 * j + 4 * lane.pair + 16 * k;
            *(Vector<float, 4>*)(memory + sumAt(row, column)) = {from[4 * j][at], from[4 * j + 1][at], from[4 * j + 2][at], from[4 * j + 3][at]};
          }
    }
  };
};

}  // namespace pollen
