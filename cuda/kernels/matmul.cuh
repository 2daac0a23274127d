// Matrix products, out [M N] = op(a) op(b), with a bias per column and a ReLU.
#pragma once

#include "product.cuh"

namespace pollen {

template <class Shape, bool transposeA, bool transposeB, class T, class Memory>
INLINE void matmulAs(Memory* memory, const T* a, const T* b, Output<T> out, Slices slices) {
  Matrix<T, !transposeA> left = {a, out.rows, slices.depth};
  Matrix<T, transposeB> right = {b, out.columns, slices.depth};
  multiply<Shape>(left, right, out, slices, memory);
}

template <class Shape, class T, class Memory>
INLINE void matmul(Memory* memory, const T* a, const T* b, bool transposeA, bool transposeB, Output<T> out, Slices slices) {
  if (transposeA && transposeB) matmulAs<Shape, true, true>(memory, a, b, out, slices);
  else if (transposeA) matmulAs<Shape, true, false>(memory, a, b, out, slices);
  else if (transposeB) matmulAs<Shape, false, true>(memory, a, b, out, slices);
  else matmulAs<Shape, false, false>(memory, a, b, out, slices);
}

}  // namespace pollen

// MATMUL is a kernel with the tile that follows its name and type. bias is anything when epilogue asks for none; out is workspace when the grid
// has slices along y.
#define MATMUL(name, T, ...)                                                                                                              \
  KERNEL(name, (__VA_ARGS__::threads))                                                                                                    \
  (Out<T> out, In<T> a, In<T> b, In<T> bias, int m, int n, int k, int transposeA, int transposeB, int epilogue, int slices, int each) {   \
    using Shape = __VA_ARGS__;                                                                                                            \
    SHARED(Stages<Shape>, memory, 1);                                                                                                     \
    Output<T> to = {out.at(), bias.at(), m, n, n, n, 0, epilogue};                                                                        \
    matmul<Shape>(memory[0].words, a.at(), b.at(), transposeA, transposeB, to, Slices{k, slices, each});                                  \
  }
