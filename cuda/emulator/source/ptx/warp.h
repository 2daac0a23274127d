// Instructions of a whole warp. The fragments of matrices are those of the PTX ISA, "Warp-level
// matrix multiply-accumulate instructions".
#pragma once

#include "memory.h"

namespace pollen {
namespace ptx {

static inline U32 shuffleFrom(U32 value, U32 lane) {
  U32 got;
  __builtin_memcpy(&got, exchange(Wait::Shuffle, &value, 4)[lane & 31], 4);
  return got;
}
static inline U32 shuffleXor(U32 value, U32 mask) { return shuffleFrom(value, laneNumber() ^ mask); }

// multiplyTF32 is mma.m16n8k8 of tf32, multiplyBF16 mma.m16n8k16 of bf16: d += a b, where ab has a
// lane's four registers of a and two of b.
void multiplyTF32(F32 (&d)[4], const U32 (&ab)[6]);
void multiplyBF16(F32 (&d)[4], const U32 (&ab)[6]);

// loadMatrices is ldmatrix: lane 8 m + r passes the address of row r of matrix m, eight 16-bit
// numbers. A lane gets of each matrix the numbers 2 (lane % 4) and 2 (lane % 4) + 1 of row lane /
// 4; transposed, those rows of column lane / 4.
template <int count, bool transposed, class S>
static inline void loadMatrices(U32 (&words)[count], const S& shared, U64 row, int line) {
  int lane = laneNumber();
  Exchanged* rows = exchange(Wait::LoadMatrix, &row, sizeof row);
  for (int m = 0; m < count; m++) {
    U16 two[2];
    for (int i = 0; i < 2; i++) {
      int r = transposed ? lane % 4 * 2 + i : lane / 4, c = transposed ? lane / 4 : lane % 4 * 2 + i;
      U64 at;
      __builtin_memcpy(&at, rows[8 * m + r], sizeof at);
      two[i] = ((const U16*)shared.template reads<16>(at, line))[c];
    }
    words[m] = two[0] | (U32)two[1] << 16;
  }
}

}  // namespace ptx
}  // namespace pollen
