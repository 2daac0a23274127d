// A kernel that does the work of several launches: each has a row of arguments, and some of the blocks.
#pragma once
#include "pollen.cuh"

namespace pollen {

// Share is an argument: a number of elements, and which of how many blocks the block at hand is among those that work on them.
struct BlockRange {
  int n, block, blocks;

  INLINE operator int() const { return n; }
  INLINE bool first() const { return block == 0 && threadIdx.x == 0; }
};

// Stored is an argument as a row has it, at a multiple of its alignment: the row gives a Share its number of elements.
template <class A>
struct Stored {
  using Type = A;
};
template <>
struct Stored<BlockRange> {
  using Type = int;
};

constexpr int maxRows = 12;

// Rows is a kernel's one parameter, as cuda/rows.go writes it. Row i has the blocks from ends[i - 1] on, and before ends[i].
template <class... A>
struct Rows {
  // place is where argument i of a row begins; that behind the last is where the next row does.
  static constexpr int place(int i) {
    constexpr int sizes[] = {sizeof(typename Stored<A>::Type)..., 0}, aligns[] = {alignof(typename Stored<A>::Type)..., 8};
    int at = 0;
    for (int k = 0;; k++) {
      at = (at + aligns[k] - 1) / aligns[k] * aligns[k];
      if (k == i) return at;
      at += sizes[k];
    }
  }

  int ends[maxRows];
  alignas(8) char rows[maxRows][place(sizeof...(A))];

  template <class F>
  INLINE void run(F f) const {
    static_assert(sizeof(Rows) <= 4096, "a kernel takes no more");
    int row = 0, begin = 0;
    while ((int)blockIdx.x >= ends[row]) begin = ends[row++];
    call(f, rows[row], (int)blockIdx.x - begin, ends[row] - begin, Counted<0, A...>());
  }

 private:
  // Counted is arguments with their numbers, from i on.
  template <int i, class... Left>
  struct Counted {};

  template <class F, int i, class First, class... Left, class... Taken>
  INLINE static void call(F f, const char* row, int block, int blocks, Counted<i, First, Left...>, const Taken&... taken) {
    constexpr int at = place(i);
    const auto& stored = *(const typename Stored<First>::Type*)(row + at);
    if constexpr (sizeof(First) == sizeof(stored))
      call(f, row, block, blocks, Counted<i + 1, Left...>(), taken..., stored);
    else
      call(f, row, block, blocks, Counted<i + 1, Left...>(), taken..., BlockRange{stored, block, blocks});
  }
  template <class F, int i, class... Taken>
  INLINE static void call(F f, const char*, int, int, Counted<i>, const Taken&... taken) {
    f(taken...);
  }
};

// rowsOf has the type of a function's rows.
template <class... A>
Rows<A...> rowsOf(void (*)(A...));

}  // namespace pollen
