// Vectors of four neighbouring elements, for loads and stores of 16 bytes (32 in double). Every
// buffer begins at a multiple of 64 bytes.
#pragma once
#include "pollen.cuh"

namespace pollen {

template <class T>
struct alignas(16) Quad {
  T v[4];
};

// loadQuad loads the four elements at x, a multiple of 16 bytes.
template <class T>
INLINE Quad<T> loadQuad(const T* x) {
  Quad<T> q = *(const Quad<T>*)x;
  keepLive(q.v[0], q.v[1], q.v[2], q.v[3]);  // otherwise clang makes four loads of it
  return q;
}

// load loads elements i to i + 3, where i is a multiple of 4. If count is below 4, only count
// elements exist, and the others are 0.
template <class T>
INLINE Quad<T> load(const T* x, int i, int count) {
  if (count == 4) return loadQuad(x + i);
  Quad<T> q = {};
#pragma unroll
  for (int k = 0; k < 3; k++)
    if (k < count) q.v[k] = x[i + k];
  return q;
}

// store stores the first count elements of q at y + i.
template <class T>
INLINE void store(T* y, int i, int count, const Quad<T>& q) {
  if (count == 4) {
    *(Quad<T>*)(y + i) = q;
    return;
  }
#pragma unroll
  for (int k = 0; k < 3; k++)
    if (k < count) y[i + k] = q.v[k];
}

// quads calls f(i, count) for each group of four of n elements, in a grid-stride loop. The last
// group may be incomplete.
template <class F>
INLINE void quads(int n, F f) {
  int whole = n / 4;
  for (int q = first(); q < whole; q += step()) f(4 * q, 4);
  if (first() == 0 && n % 4 != 0) f(4 * whole, n % 4);
}

// mapEach sets y[i] to f(x[i]...) for all i below n, one element per thread.
//
// A grid-stride loop lets the host choose any grid: each thread takes elements first(), first() +
// step() and so on. Neighbouring threads access neighbouring elements, which the hardware combines
// into transactions of 32 bytes.
template <class T, class F, class... X>
INLINE void mapEach(Out<T> y, int n, F f, Buffer<X>... x) {
  for (int i = first(); i < n; i += step()) y.at()[i] = f(x.at()[i]...);
}

// each applies f to the elements of vectors.
template <class T, class F, class... X>
INLINE Quad<T> each(F f, const Quad<X>... x) {
  Quad<T> y;
#pragma unroll
  for (int k = 0; k < 4; k++) y.v[k] = f(x.v[k]...);
  return y;
}

// mapQuads processes whole vectors in a grid-stride loop, and the up to three last elements by
// single threads.
template <class T, class F, class... X>
INLINE void mapQuads(T* y, int n, F f, const X*... x) {
  int whole = n / 4;
  for (int q = first(); q < whole; q += step()) ((Quad<T>*)y)[q] = each<T>(f, loadQuad(x + 4 * q)...);
  int i = 4 * whole + first();
  if (i < n) y[i] = f(x[i]...);
}

// map sets y[i] to f(x[i]...) for all i below n: by vectors of four in float, and by elements in
// double, where four already take two loads.
template <class T, class F, class... X>
INLINE void map(Out<T> y, int n, F f, Buffer<X>... x) {
  if constexpr (sizeof(T) == 4)
    mapQuads(y.at(), n, f, (const X*)x.at()...);
  else
    mapEach(y, n, f, x...);
}

}  // namespace pollen
