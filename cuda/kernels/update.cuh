// What the updates of parameters have in common. A block has tiles of the parameters, whose statistics it leaves, the sums of theta g. A thread
// has fours of them, the normals of a Philox counter. The operations on parameters and states are those of the host in their order, each rounded: the
// same bits. Sums of some 256 are made in the program's float, as on the host, those of more in double.
#pragma once
#include "philox.cuh"
#include "reduce.cuh"
#include "rows.cuh"

namespace pollen {

// updateTile is how many of n parameters a tile has.
INLINE int updateTile(int n) { return n <= 128 * 1024 ? 1024 : 4096; }

// UPDATE is a kernel of float, of which a multiprocessor holds two blocks, or of double: its name, its arguments for one parameter, and what a row does.
#define UPDATE(name, T, arguments, ...) UPDATE_OF(name, sizeof(T) == 4 ? 2 : 1, arguments, __VA_ARGS__)
#define UPDATE_OF(name, blocks, arguments, ...)   \
  INLINE void name##_row arguments { __VA_ARGS__; } \
  KERNEL(name, 512, blocks)(decltype(rowsOf(name##_row)) rows) { rows.run([](auto... a) INLINED { name##_row(a...); }); }

// prefetch tells the device that the block will read its first tile of these buffers, while it waits for what else it needs.
template <class... X>
INLINE void prefetch(BlockRange n, X... x) {
  auto one = [&](auto* p) INLINED {
    constexpr int line = 128 / sizeof(*p);
    int i = threadIdx.x * line, at = n.block * updateTile(n) + i;
    if (i < updateTile(n) && at < n) prefetchLine(p + at);
  };
  (one(x.at()), ...);
}

// tiles calls f(tile) for the block's tiles. A grid may have fewer blocks than there are tiles: what a block does before them is then done less often.
template <class F>
INLINE void tiles(BlockRange n, F f) {
  for (int tile = n.block; tile * updateTile(n) < n; tile += n.blocks) f(tile);
}

// tileSum is the sum of what f(i, count) returns for the fours of a tile. Each thread adds its own in order, then a warp's are added, all in that type,
// then the warps' in double. The last four, which may have fewer, is the first thread's: the compiler knows that all others are whole.
template <class F>
INLINE double tileSum(int n, int tile, F f) {
  int each = updateTile(n), begin = tile * each, end = n - begin < each ? n : begin + each, whole = end - (end - begin) % 4;
  decltype(f(0, 4)) sum = 0;
  for (int i = begin + 4 * threadIdx.x; i < whole; i += 4 * blockDim.x) sum += f(i, 4);
  if (threadIdx.x == 0 && whole < end) sum += f(whole, end - whole);
  return blockSumAs<double>(sum);
}

// leave is a tile's number, which all threads have, for other kernels.
template <class T>
INLINE void storeTile(Out<T> y, int tile, double v) {
  if (threadIdx.x == 0) y.at()[tile] = T(v);
}

// update leaves those sums as the tiles' statistics.
template <class T, class F>
INLINE void update(Out<T> statistics, BlockRange n, F f) {
  tiles(n, [&](int tile) INLINED { storeTile(statistics, tile, tileSum(n, tile, f)); });
}

// dot is the sum of x y over a four, each product added with one rounding.
template <class T>
INLINE T dot(const Quad<T>& x, const Quad<T>& y) {
  T sum = x.v[0] * y.v[0];
#pragma unroll
  for (int k = 1; k < 4; k++) sum = math::fma(x.v[k], y.v[k], sum);
  return sum;
}

// entry is a table's value at the step; after its end, the last one.
template <class T>
INLINE T entry(In<T> table, int entries, unsigned long long step) {
  return table.at()[step < (unsigned long long)entries ? (int)step : entries - 1];
}

template <class T>
INLINE T decayed(T g, T theta, T decay) {
  return g + decay * theta;
}

template <class T>
INLINE T descend(T theta, T rate, T g) {
  return theta - rate * g;
}

// averageSquare is the running mean of squares, g's square being the newest.
template <class T>
INLINE T averageSquare(T mean, T keep, T g) {
  return keep * mean + (1 - keep) * g * g;
}

// noiseScale is the standard deviation of the noise that balances a drift of -h G gU at a temperature.
INLINE double noiseScale(double h, double temperature, double preconditioner) { return math::sqrt(2 * h * temperature * preconditioner); }

}  // namespace pollen
