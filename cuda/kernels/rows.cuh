// One kernel that does the work of several launches, such as the updates of all parameters: each
// launch is a row of arguments, and gets some of the grid's blocks.
#pragma once
#include "pollen.cuh"

namespace pollen {

// BlockRange is an argument: a number of elements n, and this block's number among the blocks that
// process them.
struct BlockRange {
  int n, block, blocks;

  INLINE operator int() const { return n; }
  INLINE bool first() const { return block == 0 && threadIdx.x == 0; }
};

// Stored is an argument's type in a row, where it lies at a multiple of its alignment. A row stores
// only the number of elements of a BlockRange.
template <class A>
struct Stored {
  using Type = A;
};
template <>
struct Stored<BlockRange> {
  using Type = int;
};

constexpr int maxRows = 12;

// Rows is the only parameter of such a kernel; cuda/rows.go writes it. Row i has the blocks from
// ends[i - 1] up to, not including, ends[i]. Example: ends = {4, 6} gives blocks 0-3 to row 0 and
// blocks 4-5 to row 1.
//
// An update's kernel is memory-bound, so that its time is proportional to its elements. The host
// gives each row a number of blocks in proportion, and a block finds its row by a short search at
// its start.
template <class... A>
struct Rows {
  // place returns the offset of argument i in a row; place(number of arguments) is the row's size.
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

  // run finds the block's row and calls f with its arguments.
  template <class F>
  INLINE void run(F f) const {
    static_assert(sizeof(Rows) <= 4096, "a kernel takes no more");
    int row = 0, begin = 0;
    while ((int)blockIdx.x >= ends[row]) begin = ends[row++];
    call(f, rows[row], (int)blockIdx.x - begin, ends[row] - begin, Counted<0, A...>());
  }

 private:
  // Counted is the arguments from number i on, in recursion over their types.
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

// rowsOf's return type is the Rows of a function's arguments; it is used in decltype only.
template <class... A>
Rows<A...> rowsOf(void (*)(A...));

}  // namespace pollen
