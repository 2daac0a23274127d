// Products of a warp's fragments in the PTX ISA's layouts, for translated PTX (ptx/warp.h).
#include <cstdio>

#include "ptx/instructions.h"
#include "ptx/warp.h"

namespace pollen {
namespace ptx {

void complain(const char* what, U64 at, U64 bytes, int line) {
  char text[160];
  snprintf(text, sizeof text, "accesses %llu bytes at 0x%llx, %s, in line %d of the PTX", bytes, at, what, line);
  fault(text);
}

namespace {

// Place is an element's position in fragments: a lane, and which of its elements.
struct Place {
  unsigned char lane, element;
};

// Fragments of a, 16 x depth, and of b, depth x 8. The PTX ISA gives the row and column of each
// lane's elements; here they are listed by row and column.
template <int depth>
struct Fragments {
  Place a[16][depth], b[depth][8];
};

// m16n8k8, .tf32: groupID = lane / 4, threadID_in_group = lane % 4.
constexpr Fragments<8> fragmentsTF32() {
  Fragments<8> f{};
  for (int lane = 0; lane < 32; lane++) {
    int group = lane / 4, thread = lane % 4;
    for (int i = 0; i < 4; i++) {
      int row = i == 0 || i == 2 ? group : group + 8, column = i == 0 || i == 1 ? thread : thread + 4;
      f.a[row][column] = {(unsigned char)lane, (unsigned char)i};
    }
    for (int i = 0; i < 2; i++) f.b[i == 0 ? thread : thread + 4][group] = {(unsigned char)lane, (unsigned char)i};
  }
  return f;
}

// m16n8k16, .bf16: two elements to a register, the first in the lower half.
constexpr Fragments<16> fragmentsBF16() {
  Fragments<16> f{};
  for (int lane = 0; lane < 32; lane++) {
    int group = lane / 4, thread = lane % 4;
    for (int i = 0; i < 8; i++) {
      int row = i < 2 || (i >= 4 && i < 6) ? group : group + 8, column = i < 4 ? thread * 2 + (i & 1) : thread * 2 + (i & 1) + 8;
      f.a[row][column] = {(unsigned char)lane, (unsigned char)i};
    }
    for (int i = 0; i < 4; i++) f.b[i < 2 ? thread * 2 + (i & 1) : thread * 2 + (i & 1) + 8][group] = {(unsigned char)lane, (unsigned char)i};
  }
  return f;
}

// The lower 13 bits of a tf32 word are ignored.
F32 elementTF32(const char* registers, int i) {
  U32 word;
  __builtin_memcpy(&word, registers + 4 * i, 4);
  return number(word & 0xffffe000u);
}

F32 elementBF16(const char* registers, int i) {
  U16 half;
  __builtin_memcpy(&half, registers + 2 * i, 2);
  return number((U32)half << 16);
}

// multiply adds to a lane's elements of the 16 x 8 sums: (groupID, threadID_in_group * 2 + (i & 1))
// for i < 2, and eight rows below for the others. Products are exact; the PTX ISA does not specify
// the order of their sum.
template <int depth, F32 (*element)(const char*, int)>
void multiply(F32 (&d)[4], Exchanged* lanes, const Fragments<depth>& f) {
  int lane = laneNumber(), group = lane / 4, thread = lane % 4;
  typedef F32 Four __attribute__((vector_size(16)));
  Four sum = {};
  for (int k = 0; k < depth; k++) {
    F32 a[2], b[2];
    for (int i = 0; i < 2; i++) {
      Place left = f.a[group + 8 * i][k], right = f.b[k][2 * thread + i];
      a[i] = element(lanes[left.lane], left.element);
      b[i] = element(lanes[right.lane] + 16, right.element);
    }
    sum += Four{a[0], a[0], a[1], a[1]} * Four{b[0], b[1], b[0], b[1]};
  }
  for (int i = 0; i < 4; i++) d[i] = canonical(d[i] + sum[i]);
}

}  // namespace

void multiplyTF32(F32 (&d)[4], const U32 (&ab)[6]) {
  static constexpr Fragments<8> fragments = fragmentsTF32();
  multiply<8, elementTF32>(d, exchange(Wait::MultiplyTF32, ab, sizeof ab), fragments);
}

void multiplyBF16(F32 (&d)[4], const U32 (&ab)[6]) {
  static constexpr Fragments<16> fragments = fragmentsBF16();
  multiply<16, elementBF16>(d, exchange(Wait::MultiplyBF16, ab, sizeof ab), fragments);
}

}  // namespace ptx
}  // namespace pollen
