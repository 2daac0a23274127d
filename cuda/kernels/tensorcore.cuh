// A product tile on the tensor cores (sm_80): operands are rounded to tf32 or bf16 on their way
// from shared memory to registers, sums are float32.
//
// The fragments are those of mma.m16n8k8 (tf32) and mma.m16n8k16 (bf16), see PTX ISA, "Warp-level
// matrix instructions". With group = lane / 4 and pair = lane % 4, a lane provides
//
// - of a: rows group and group + 8, at two words of depth,
// - of b: column group, at the same words,
// - and holds of the sums: columns 2 pair and 2 pair + 1 of its two rows.
//
// A product does not depend on how its rows, columns and depths are numbered, and this tile
// renumbers them so that each lane reads four neighbouring floats, a chunk, at once. For a and b,
// the lane's chunk is number group / 2 + 4 (group % 2) of 32 rows or columns: its four numbers
// serve as four rows of two mma of 16 rows, or four columns of four mma of 8 columns. In depth, a
// bf16 word combines depths pair and pair + 4 (or those eight further on). The lane's sums then are
// chunks pair and pair + 4. Example: lane 5 has group 1 and pair 1; it reads chunk 4, rows 16 to
// 19.
//
// Lanes that share the banks in one 16-byte read have groups 2 i and 2 i + 1, hence chunks i and i
// + 4 of four depths: the access that the swizzle of stage.cuh makes conflict-free.
//
// Operands stay float32 in shared memory, because cp.async cannot convert, and each warp that reads
// them rounds them. What limits a tile is the cache that feeds shared memory: it delivers 16 bytes
// in the time in which shared memory delivers 128. ldmatrix would need contiguous depth, as
// nhwc.cuh has it.
#pragma once

#include "product.cuh"

namespace pollen {

// TF32 has float32's exponent and ten bits of fraction. A word holds one float32, whose low 13 bits
// the tensor cores ignore. So adding half a unit of the tenth bit, 1 << 12, rounds to nearest, ties
// away from zero. The NaN that GPUs produce, 0x7fffffff, would overflow the integer, and is kept by
// the comparison. Infinity stays one: the half is among the ignored bits. Only a NaN with its sign
// and the eleven upper fraction bits set, 0xfffff000 and above, is lost: no arithmetic of a GPU, of
// Go or of an x86 processor produces one, and keeping it would take three more instructions per
// word.
//
// From sm_90 on this compiles to one instruction, where cvt.rna takes two and a move to where mma
// wants its operands.
struct TF32 {
  static constexpr int depth = 8;
  static INLINE unsigned word(const Vector<float, 4>* v, int i, int x) {
    int number = __builtin_bit_cast(int, v[i].v[x]), rounded = (int)((unsigned)number + (1u << 12));
    return rounded > number ? rounded : number;
  }
  static INLINE void multiply(float* d, const unsigned* a, const unsigned* b) { mmaTF32_16x8x8(d, a, b); }
};

// BF16 has float32's exponent and seven bits of fraction. A word holds two numbers.
struct BF16 {
  static constexpr int depth = 16;
  static INLINE unsigned word(const Vector<float, 4>* v, int i, int x) { return packBF16(v[2 * i].v[x], v[2 * i + 1].v[x]); }
  static INLINE void multiply(float* d, const unsigned* a, const unsigned* b) { mmaBF16_16x8x16(d, a, b); }
};

// TensorTile is the output tile of a block: rows x columns sums, of which each warp computes
// warpRows x warpColumns; all are multiples of 32. With groups above 1, each group of threads
// computes the whole tile for its own slice of the depth.
template <class Number, int rows_, int columns_, int stages_, int warpRows, int warpColumns, int groups_ = 1>
struct TensorTile {
  static constexpr int rows = rows_, columns = columns_, depth = 16, stages = stages_, groups = groups_;
  static constexpr int across = columns / warpColumns, threads = 32 * across * (rows / warpRows), all = threads * groups;
  static constexpr int blocks = groups > 1 ? 1 : warpRows * warpColumns > 2048 ? 2 : 3;  // resident blocks per multiprocessor, which has 65536 registers
  static constexpr int left = depth * rows, stage = depth * (rows + columns), memory = stages * stage;
  static constexpr int passes = 1, passRows = rows;
  static_assert(rows * columns <= memory, "the sums fit into the stages");

  // sumAt returns the index of a sum in shared memory. The XOR separates the banks of two lane
  // groups, whose rows are 16 apart.
  static INLINE int sumAt(int row, int column) { return row * columns + (column ^ row / 16 % 2 * 16); }

  struct Sums {
    float v[warpRows / 16][warpColumns / 8][4];

    // Lane is a thread's warp tile and its lane's pair and chunk.
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

    // read loads a lane's part of 32 rows or columns from begin on: four of them, each with two
    // words of depth.
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
            // mma wants a as (row group, words 0), (row group + 8, words 0), (row group, words 1),
            // (row group + 8, words 1).
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
