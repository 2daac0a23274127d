// Rows of a matrix [rows width] in the lanes of warps. lanes of them, a power of two up to 32, process
// a row, which needs no other warp and so no barrier. If quads is above 0 they hold it in registers,
// up to quads times four elements each, and width is a multiple of 4. If quads is 0 they read it from
// memory whenever they need it.
#pragma once
#include "math.cuh"
#include "quad.cuh"
#include "reduce.cuh"

namespace pollen {

// Place is an element of a row that a thread has: element i of its quad k or, if quads is 0, element k
// of the row.
struct Place {
  int k, i;
};

template <int quads>
struct RowShape {
  int row, lane, lanes, width;
  bool exists;  // blocks of the last rows have threads without one, which compute as others do

  INLINE RowShape(int rows, int width, int lanes) : lane(first() % lanes), lanes(lanes), width(width) {
    row = first() / lanes;
    exists = row < rows;
    if (!exists) row = rows - 1;
  }

  INLINE long long begin() const { return (long long)row * width; }

  // element returns the first element of a thread's quad k.
  INLINE int element(int k) const { return 4 * (lane + k * lanes); }

  // each calls f for all elements of a thread and, if quads is above 0, for places beyond the row.
  template <class F>
  INLINE void each(F f) const {
    if constexpr (quads > 0) {
#pragma unroll
      for (int k = 0; k < quads; k++)
#pragma unroll
        for (int i = 0; i < 4; i++) f(Place{k, i});
    } else {
      for (int e = lane; e < width; e += lanes) f(Place{e, 0});
    }
  }

  // sum returns the sum of v over the row's lanes, in all of them.
  INLINE double sum(double v) const {
#pragma unroll
    for (int mask = 16; mask > 0; mask >>= 1) {
      double other = shuffleXor(v, mask);
      if (mask < lanes) v += other;
    }
    return v;
  }
};

// Row is a thread's elements of a row. Those beyond its end are 0.
template <class T, int quads>
struct Row {
  const T* from;
  Quad<T> v[quads > 0 ? quads : 1];

  INLINE Row(const T* x, const RowShape<quads>& s) : from(x + s.begin()) {
    if constexpr (quads > 0) {
#pragma unroll
      for (int k = 0; k < quads; k++) v[k] = s.element(k) < s.width ? loadQuad(from + s.element(k)) : Quad<T>();
    }
  }

  INLINE T operator()(Place p) const {
    if constexpr (quads > 0) return v[p.k].v[p.i];
    else return from[p.k];
  }

  // add adds another row to one in registers.
  INLINE void add(const T* x, const RowShape<quads>& s) {
    Row other(x, s);
    s.each([&](Place p) INLINED { v[p.k].v[p.i] = v[p.k].v[p.i] + other(p); });
  }

  // set changes an element, in registers, which write then writes to y, or in y.
  INLINE void set(Place p, T value, T* y, const RowShape<quads>& s) {
    if constexpr (quads > 0) v[p.k].v[p.i] = value;
    else if (s.exists) y[s.begin() + p.k] = value;
  }
  INLINE void write(T* y, const RowShape<quads>& s) const {
    if constexpr (quads > 0) {
#pragma unroll
      for (int k = 0; k < quads; k++)
        if (s.exists && s.element(k) < s.width) *(Quad<T>*)(y + s.begin() + s.element(k)) = v[k];
    }
  }
};

// RowNorm is 1/sqrt(mean of x^2 + epsilon) of a row, and what filter response normalisation makes of
// it: forward and backward use the same operations, so that both find the same elements above a
// threshold.
template <class T>
struct RowNorm {
  double inverse, scale, shift;

  template <int quads>
  INLINE RowNorm(const Row<T, quads>& x, const RowShape<quads>& s, double gamma, double beta, double epsilon) : shift(beta) {
    double squares = 0;
    s.each([&](Place p) INLINED { squares = math::fma((double)x(p), (double)x(p), squares); });
    inverse = 1 / math::sqrt(s.sum(squares) / s.width + epsilon);
    scale = gamma * inverse;
  }
  INLINE T operator()(T x) const { return T((double)x * scale + shift); }
};

}  // namespace pollen
