// Reordering of elements: transposes, repeats, slices and their gradients; and products of batches
// of small matrices.
#include "pollen.cuh"
#include "layout.cuh"

// strided covers transposes, broadcasts and slices: offset is the slice's start.
template <class T>
INLINE void strided(Out<T> y, In<T> x, int n, int offset, const Layout<6>& w) {
  for (int i = first(); i < n; i += step()) y.at()[i] = x.at()[offset + w.at(i)];
}

// unslice is the gradient of a slice: element at of an axis comes from x's element (at - start) /
// apart if the slice has it, and is 0 otherwise.
template <class T>
INLINE void unslice(Out<T> y, In<T> x, int n, int extent, int inner, int start, int apart, int count) {
  for (int i = first(); i < n; i += step()) {
    int line = i / inner, at = line % extent - start;
    bool taken = at >= 0 && at % apart == 0 && at / apart < count;
    y.at()[i] = taken ? x.at()[(line / extent * count + at / apart) * inner + i % inner] : T(0);
  }
}

// place copies lines of x, of width elements each, to offset start of y's lines, which are pitch
// apart.
template <class T>
INLINE void place(Out<T> y, In<T> x, int n, int width, int pitch, int start) {
  for (int i = first(); i < n; i += step()) y.at()[i / width * pitch + start + i % width] = x.at()[i];
}

// batchMatMul has one element of c per thread; the terms of its sum are stepA and stepB apart.
template <class T>
INLINE void batchMatMul(Out<T> c, In<T> a, In<T> b, int n, int rows, int columns, int depth, int rowA, int stepA, int columnB, int stepB) {
  for (int i = first(); i < n; i += step()) {
    int line = i / columns, pair = line / rows;
    const T* fromA = a.at() + (long long)pair * rows * depth + (long long)(line % rows) * rowA;
    const T* fromB = b.at() + (long long)pair * depth * columns + (long long)(i % columns) * columnB;
    double total = 0;
    for (int k = 0; k < depth; k++) total += (double)fromA[(long long)k * stepA] * (double)fromB[(long long)k * stepB];
    c.at()[i] = T(total);
  }
}

#define STRIDED(T, suffix)                                                                                                                \
  KERNEL(strided_fwd_##suffix, 256)(Out<T> y, In<T> x, int n, int offset, LAYOUT6(x)) { strided(y, x, n, offset, LAYOUT6_OF(x)); }            \
  KERNEL(unslice_fwd_##suffix, 256)(Out<T> y, In<T> x, int n, int extent, int inner, int start, int apart, int count) {                   \
    unslice(y, x, n, extent, inner, start, apart, count);                                                                                 \
  }                                                                                                                                       \
  KERNEL(place_fwd_##suffix, 256)(Out<T> y, In<T> x, int n, int width, int pitch, int start) { place(y, x, n, width, pitch, start); }        \
  KERNEL(batch_matmul_fwd_##suffix, 256)(Out<T> c, In<T> a, In<T> b, int n, int rows, int columns, int depth, int rowA, int stepA,        \
                                         int columnB, int stepB) {                                                                        \
    batchMatMul(c, a, b, n, rows, columns, depth, rowA, stepA, columnB, stepB);                                                           \
  }

STRIDED(float, f32)
STRIDED(double, f64)
