// Products of a warpgroup in the PTX ISA's layouts, for translated PTX (ptx/group.h).
#include "ptx/group.h"

namespace pollen {
namespace ptx {

// Products are exact; the PTX ISA does not specify the order of their sum. Here it is the order of
// the depth, eight sums at a time.
void multiplyWarpgroup(const U16 (*a)[16], const U16 (*b)[16], int columns) {
  typedef F32 Eight __attribute__((vector_size(32), aligned(4)));
  F32 right[16][256], all[256];
  for (int k = 0; k < 16; k++)
    for (int column = 0; column < columns; column++) right[k][column] = number((U32)b[column][k] << 16);
  for (int row = 0; row < 64; row++) {
    F32 left[16];
    for (int k = 0; k < 16; k++) left[k] = number((U32)a[row][k] << 16);
    for (int column = 0; column < columns; column += 8) {
      Eight sum = {};
      for (int k = 0; k < 16; k++) sum += left[k] * *(const Eight*)&right[k][column];
      *(Eight*)&all[column] = sum;
    }
    putProduct(row * columns, all, columns);
  }
}

unsigned long long digestOf(const ProductReads& reads) {
  unsigned long long digest = 0;
  for (int side = 0; side < 2; side++) {
    Descriptor from(reads.operands[side]);
    for (int row = 0; row < (side == 0 ? 64 : reads.columns); row++)
      for (int c = 0; c < 2; c++) {
        U64 words[2];
        __builtin_memcpy(words, (const char*)reads.memory + from.at(row, c) - 1024, 16);
        for (U64 word : words) digest = (digest ^ word) * 0x9e3779b97f4a7c15ull, digest ^= digest >> 29;
      }
  }
  return digest;
}

// The PTX ISA's fragment of A in registers: warp w of the warpgroup has rows 16 w to 16 w + 15.
// Lane l has, of row l / 4, columns l % 4 * 2 and one more in a0; of row l / 4 + 8 the same in a1;
// and the columns eight further on in a2 and a3.
void leftOf(U16 (*a)[16]) {
  const U32(*words)[4] = sharedLeft();
  for (int thread = 0; thread < 128; thread++)
    for (int i = 0; i < 4; i++)
      for (int half = 0; half < 2; half++) {
        int lane = thread % 32, row = thread / 32 * 16 + lane / 4 + (i & 1 ? 8 : 0), column = lane % 4 * 2 + half + (i & 2 ? 8 : 0);
        a[row][column] = (U16)(words[thread][i] >> 16 * half);
      }
}

unsigned long long digestOfWords(const ProductReads& reads) {
  unsigned long long digest = 0;
  for (const U32* word : reads.words) digest = (digest ^ *word) * 0x9e3779b97f4a7c15ull, digest ^= digest >> 29;
  return digest;
}

unsigned long long digestAcross(const ProductReads& reads) {
  unsigned long long digest = 0;
  Descriptor from(reads.operands[1]);
  for (int k = 0; k < 16; k++)
    for (int eight = 0; eight < reads.columns / 8; eight++) {
      U64 words[2];
      __builtin_memcpy(words, (const char*)reads.memory + from.across(k, eight) - 1024, 16);
      for (U64 word : words) digest = (digest ^ word) * 0x9e3779b97f4a7c15ull, digest ^= digest >> 29;
    }
  return digest;
}

// The PTX ISA's fragment of D: warp w of the warpgroup has rows 16 w to 16 w + 15. In each eight
// columns, lane l has the two from l % 4 * 2 on, of row l / 4 in d0 and d1, of row l / 4 + 8 in d2
// and d3, and so on for every eight columns.
int groupElement(int i, int columns) {
  int lane = laneNumber(), warp = (int)(here.thread.x / 32 % 4);
  int row = warp * 16 + lane / 4 + (i & 2 ? 8 : 0), column = (i >> 2) * 8 + lane % 4 * 2 + (i & 1);
  return row * columns + column;
}

}  // namespace ptx
}  // namespace pollen
