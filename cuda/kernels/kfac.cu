// The Kronecker factors of K-FAC, see langevin/kfacfactors.go: A <- alpha A + (1 - alpha) scale
// x'x, where x'x sums data [B n width] over all axes but the second; and P, the inverse of the
// Cholesky factor of A + damping I. From step freezeAt on nothing changes, and the kernels return
// at once.
//
// - kfac_products: a block computes 32 x 32 elements of x'x for a part of the terms, a thread four
//   of them, from tiles in shared memory.
// - kfac_average: one thread per element.
// - kfac_whiten: one block per side, with n barriers each for the factor and its inverse; about
//   n^3/3 operations, at a few steps only.
#include "philox.cuh"
#include "reduce.cuh"

// A tile of x is stored with rows of 33 numbers: with 32, the elements of a column would lie in
// the same bank of shared memory, and 32 lanes reading a column would wait for one another.
constexpr int tileSide = 32, tileThreads = 256, tileRows = tileSide * tileSide / tileThreads;

// products writes the sums of part blockIdx.y of the terms (b, w) of x[b i w] x[b j w] to partial
// [parts n n].
//
// The terms are split among blockIdx.y because few factors would leave most of the GPU idle: a
// layer of 64 inputs has four tiles, and a GPU more than a hundred multiprocessors.
template <class T>
INLINE void products(Out<T> partial, In<T> data, Header header, int batch, int n, int width, int freezeAt) {
  if (stepOf(header) >= (unsigned long long)freezeAt) return;
  SHARED(T, left, tileSide * (tileSide + 1));
  SHARED(T, right, tileSide * (tileSide + 1));
  int tiles = (n + tileSide - 1) / tileSide, rows = blockIdx.x / tiles * tileSide, columns = blockIdx.x % tiles * tileSide;
  int lane = threadIdx.x % tileSide, warp = threadIdx.x / tileSide, end = part(batch * width, blockIdx.y + 1);
  const T* x = data.at();
  T sum[tileRows] = {};
  for (int from = part(batch * width, blockIdx.y); from < end; from += tileSide) {
    for (int k = warp; k < tileSide; k += tileThreads / tileSide) {
      // Lanes read neighbours in memory: terms, or elements if width is 1.
      int term = from + (width > 1 ? lane : k), element = width > 1 ? k : lane;
      long long at = (long long)(term / width) * n * width + term % width;
      int place = element * (tileSide + 1) + (width > 1 ? lane : k);
      left[place] = term < end && rows + element < n ? x[at + (long long)(rows + element) * width] : T(0);
      right[place] = term < end && columns + element < n ? x[at + (long long)(columns + element) * width] : T(0);
    }
    barrier();
    for (int k = 0; k < tileSide; k++) {
#pragma unroll
      for (int r = 0; r < tileRows; r++) {
        int row = warp + r * (tileThreads / tileSide);
        sum[r] = math::fma(left[row * (tileSide + 1) + k], right[lane * (tileSide + 1) + k], sum[r]);
      }
    }
    barrier();
  }
#pragma unroll
  for (int r = 0; r < tileRows; r++) {
    int row = rows + warp + r * (tileThreads / tileSide), column = columns + lane;
    if (row < n && column < n) partial.at()[((long long)blockIdx.y * n + row) * n + column] = sum[r];
  }
}

// average adds the parts' products in order and updates the running mean; at step 0 the mean is the
// products.
template <class T>
INLINE void average(InOut<T> factor, In<T> partial, Header header, int n, int parts, double scale, double alpha, int freezeAt) {
  unsigned long long step = stepOf(header);
  if (step >= (unsigned long long)freezeAt) return;
  // The average runs over parts in order, so the bits do not depend on the grid.
  T keep = step == 0 ? T(0) : T(alpha), share = T(step == 0 ? scale : (1 - alpha) * scale);
  for (int i = first(); i < n * n; i += pollen::step()) {
    T product = 0;
    for (int part = 0; part < parts; part++) product += partial.at()[(long long)part * n * n + i];
    factor.at()[i] = keep * factor.at()[i] + share * product;
  }
}

// diagonalMean returns the mean of a factor's diagonal.
template <class T>
INLINE double diagonalMean(In<T> factor, int n) {
  double sum = 0;
  for (int i = threadIdx.x; i < n; i += blockDim.x) sum += factor.at()[(long long)i * n + i];
  return blockSum(sum) / n;
}

// cholesky writes the Cholesky factor L of a + damping I into the lower half of p, column by
// column, one warp per row. Pivots are at least damping.
//
// The factorisation is done in place of the result, so that no workspace is needed. Column j needs
// all columns before it; only the elements below the pivot are computed in parallel, one warp
// each.
template <class T>
INLINE void cholesky(T* p, const T* a, int n, double damping) {
  int lane = threadIdx.x % 32, warp = threadIdx.x / 32, warps = blockDim.x / 32;
  for (int j = 0; j < n; j++) {
    const T* lj = p + (long long)j * n;
    // One warp computes the pivot, then all warps compute the column below it.
    if (warp == 0) {
      double square = 0;
      for (int k = lane; k < j; k += 32) square += (double)lj[k] * lj[k];
      double pivot = (double)a[(long long)j * n + j] + damping - warpSum(square);
      if (lane == 0) p[(long long)j * n + j] = T(math::sqrt(math::maximum(damping, pivot)));
    }
    barrier();
    for (int i = j + 1 + warp; i < n; i += warps) {
      T* li = p + (long long)i * n;
      double dot = 0;
      for (int k = lane; k < j; k += 32) dot += (double)li[k] * lj[k];
      dot = warpSum(dot);
      if (lane == 0) li[j] = T(((double)a[(long long)i * n + j] - dot) / (double)lj[j]);
    }
    barrier();
  }
}

// invert replaces L by its inverse, row by row: row i is (e_i - sum over k < i of L[i k] row k)/L[i
// i].
//
// Multiplying by the inverse of a triangular matrix is a product, which the update makes at every
// step with the kernels for products; solving with L would be a sequence of n dependent steps.
template <class T>
INLINE void invert(T* p, T* row, int n) {
  for (int i = 0; i < n; i++) {
    T* li = p + (long long)i * n;
    for (int k = threadIdx.x; k <= i; k += blockDim.x) row[k] = li[k];
    barrier();
    T scale = 1 / row[i];
    for (int j = threadIdx.x; j < n; j += blockDim.x) {
      T sum = 0;
#pragma unroll 4
      for (int k = j; k < i; k++) sum -= row[k] * p[(long long)k * n + j];
      li[j] = j < i ? sum * scale : j == i ? scale : T(0);
    }
    barrier();
  }
}

// whiten writes the mean of its factor's diagonal, and P at the steps that refresh it. With two
// sides the dampings are sqrt(damping) times pi and 1/pi.
template <class T>
INLINE void whiten(Out<T> means, InOut<T> whitener, In<T> factor, In<T> other, InOut<T> row, Header header, int side, int sides, int n, int others,
                   double damping, int refresh, int freezeAt) {
  unsigned long long step = stepOf(header);
  double mean = diagonalMean(factor, n), second = diagonalMean(other, others);
  if (threadIdx.x == 0) means.at()[side] = T(mean);
  if (step >= (unsigned long long)freezeAt || (step % refresh != 0 && step + 1 != (unsigned long long)freezeAt)) return;
  if (sides == 2) damping = math::sqrt(damping) * (mean > 0 && second > 0 ? math::sqrt(mean / second) : 1);
  cholesky(whitener.at(), (const T*)factor.at(), n, damping);
  invert(whitener.at(), row.at(), n);
}

#define KFAC(T, suffix)                                                                                                                         \
  KERNEL(kfac_products_##suffix, 256)(Out<T> partial, In<T> data, Header header, int batch, int n, int width, int freezeAt) {                   \
    products(partial, data, header, batch, n, width, freezeAt);                                                                                 \
  }                                                                                                                                             \
  KERNEL(kfac_average_##suffix, 256)                                                                                                            \
  (InOut<T> factor, In<T> partial, Header header, int n, int parts, double scale, double alpha, int freezeAt) {                                 \
    average(factor, partial, header, n, parts, scale, alpha, freezeAt);                                                                         \
  }                                                                                                                                             \
  KERNEL(kfac_whiten_##suffix, 1024)                                                                                                            \
  (Out<T> means, InOut<T> whitener, In<T> factor, In<T> other, InOut<T> row, Header header, int side, int sides, int n, int others,             \
   double damping, int refresh, int freezeAt) {                                                                                                 \
    whiten(means, whitener, factor, other, row, header, side, sides, n, others, damping, refresh, freezeAt);                                    \
  }

KFAC(float, f32)
KFAC(double, f64)
