// The frame of parameter updates (optimizers and samplers).
//
// A block processes tiles of a parameter, 1024 or 4096 elements each, and writes one statistic per
// tile, the sum of theta g. A thread processes four elements at a time, the four normals of one
// Philox counter. Operations on parameters and states are the host's, in the same order, each
// rounded: the results have the same bits. Sums of up to some 256 terms are in the program's float,
// as on the host, longer ones in double.
//
// A sampler's kernel is a function of one parameter's buffers and scalars, made a kernel by UPDATE:
//
//     UPDATE(sgld_update_f32, float, (Out<float> statistics, InOut<float> w, ..., BlockRange n),
//            sgld(statistics, w, ...))
//
// The BlockRange argument is the number of elements; one launch can then process several parameters
// (rows.cuh).
#pragma once
#include "philox.cuh"
#include "reduce.cuh"
#include "rows.cuh"

namespace pollen {

// updateTile returns the number of elements of a tile, for a parameter of n elements.
INLINE int updateTile(int n) { return n <= 128 * 1024 ? 1024 : 4096; }

// UPDATE defines an update kernel from its name, its float type, its arguments for one parameter,
// and the body for one row. A multiprocessor holds two blocks of a float kernel, one of a double
// kernel.
#define UPDATE(name, T, arguments, ...) UPDATE_OF(name, sizeof(T) == 4 ? 2 : 1, arguments, __VA_ARGS__)
#define UPDATE_OF(name, blocks, arguments, ...)   \
  INLINE void name##_row arguments { __VA_ARGS__; } \
  KERNEL(name, 512, blocks)(decltype(rowsOf(name##_row)) rows) { rows.run([](auto... a) INLINED { name##_row(a...); }); }

// prefetch fetches the block's first tile of these buffers into L2, while the block still waits for
// other data.
template <class... X>
INLINE void prefetch(BlockRange n, X... x) {
  auto one = [&](auto* p) INLINED {
    constexpr int line = 128 / sizeof(*p);
    int i = threadIdx.x * line, at = n.block * updateTile(n) + i;
    if (i < updateTile(n) && at < n) prefetchLine(p + at);
  };
  (one(x.at()), ...);
}

// tiles calls f(tile) for each of the block's tiles. A grid with fewer blocks than tiles repeats
// the setup before the loop less often.
template <class F>
INLINE void tiles(BlockRange n, F f) {
  for (int tile = n.block; tile * updateTile(n) < n; tile += n.blocks) f(tile);
}

// tileSum returns the sum of f(i, count) over a tile's groups of four elements: each thread adds
// its own in order, then each warp, in the same type; then the warps are added in double. An
// incomplete last group belongs to the first thread, so that the compiler sees count == 4 in the
// loop.
template <class F>
INLINE double tileSum(int n, int tile, F f) {
  int each = updateTile(n), begin = tile * each, end = n - begin < each ? n : begin + each, whole = end - (end - begin) % 4;
  decltype(f(0, 4)) sum = 0;
  for (int i = begin + 4 * threadIdx.x; i < whole; i += 4 * blockDim.x) sum += f(i, 4);
  if (threadIdx.x == 0 && whole < end) sum += f(whole, end - whole);
  return blockSumAs<double>(sum);
}

// storeTile writes a number of the tile that all threads hold.
template <class T>
INLINE void storeTile(Out<T> y, int tile, double v) {
  if (threadIdx.x == 0) y.at()[tile] = T(v);
}

// update writes these sums as the tiles' statistics.
template <class T, class F>
INLINE void update(Out<T> statistics, BlockRange n, F f) {
  tiles(n, [&](int tile) INLINED { storeTile(statistics, tile, tileSum(n, tile, f)); });
}

// dot returns the sum of x y over four elements, by fused multiply-adds.
template <class T>
INLINE T dot(const Quad<T>& x, const Quad<T>& y) {
  T sum = x.v[0] * y.v[0];
#pragma unroll
  for (int k = 1; k < 4; k++) sum = math::fma(x.v[k], y.v[k], sum);
  return sum;
}

// entry returns a schedule's value at the step, and its last value after its end.
template <class T>
INLINE T entry(In<T> table, int entries, unsigned long long step) {
  return table.at()[step < (unsigned long long)entries ? (int)step : entries - 1];
}

// decayed adds weight decay to a gradient; descend makes a gradient step.
template <class T>
INLINE T decayed(T g, T theta, T decay) {
  return g + decay * theta;
}

template <class T>
INLINE T descend(T theta, T rate, T g) {
  return theta - rate * g;
}

// averageSquare updates a running mean of squares with g.
template <class T>
INLINE T averageSquare(T mean, T keep, T g) {
  return keep * mean + (1 - keep) * g * g;
}

// noiseScale returns the standard deviation of the noise that, at a temperature, balances a drift
// of -h G gradU, where G is the preconditioner: sqrt(2 h T G).
INLINE double noiseScale(double h, double temperature, double preconditioner) { return math::sqrt(2 * h * temperature * preconditioner); }

}  // namespace pollen
