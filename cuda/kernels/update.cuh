// What the updates of parameters have in common. A block has a tile of updateTile parameters, whose statistic it leaves, the sum of theta g. A thread has
// fours of them, the normals of a Philox counter. The operations on parameters and states are those of the host in their order, each rounded: the
// same bits. Sums are made in double.
#pragma once
#include "philox.cuh"
#include "reduce.cuh"

namespace pollen {

constexpr int updateTile = 4096;

// UPDATE is a kernel of float, of which a multiprocessor holds two blocks, or of double.
#define UPDATE(name, T) KERNEL(name, 512, sizeof(T) == 4 ? 2 : 1)

// prefetch tells the device that the block will read its tile of these buffers, while it waits for what else it needs.
template <class... X>
INLINE void prefetch(int n, X... x) {
  auto one = [&](auto* p) INLINED {
    constexpr int line = 128 / sizeof(*p);
    int i = threadIdx.x * line, at = blockIdx.x * updateTile + i;
    if (i < updateTile && at < n) prefetchLine(p + at);
  };
  (one(x.at()), ...);
}

// tileSum is the sum of what f(i, count) returns for the fours of the block's tile. Each thread adds its own in order; the last four, which may have
// fewer, is the first thread's.
template <class F>
INLINE double tileSum(int n, F f) {
  int begin = blockIdx.x * updateTile, count = n - begin < updateTile ? n - begin : updateTile, whole = count / 4 * 4;
  double sum = 0;
  bool rest = threadIdx.x == 0 && whole < count;
  for (int i = 4 * threadIdx.x; i < whole || rest; i += 4 * blockDim.x) {
    bool four = i < whole;
    sum += f(begin + (four ? i : whole), four ? 4 : count - whole);
    rest &= four;
  }
  return blockSum(sum);
}

// tile leaves that sum as the tile's statistic.
template <class T, class F>
INLINE void tile(Out<T> statistics, int n, F f) {
  double sum = tileSum(n, f);
  if (threadIdx.x == 0) statistics.at()[blockIdx.x] = T(sum);
}

// dot is the sum of x y over a four.
template <class T>
INLINE double dot(const Quad<T>& x, const Quad<T>& y) {
  double sum = 0;
#pragma unroll
  for (int k = 0; k < 4; k++) sum += (double)x.v[k] * (double)y.v[k];
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
