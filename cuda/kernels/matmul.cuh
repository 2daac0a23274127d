// Matrix products, out [M N] = op(a) op(b), with a bias per column and a ReLU, or a mask.
#pragma once

#include "product.cuh"

// MATMUL defines a kernel that uses the tile given after its name and type; the launch provides the
// tile's shared memory. bias may be any buffer if epilogue does not use it. If the grid splits the
// depth along y, out is a workspace of partial sums.
#define MATMUL(name, T, ...)                                                                                                              \
  KERNEL(name, (__VA_ARGS__::all), (__VA_ARGS__::blocks))                                                                                 \
  (Out<T> out, In<T> a, In<T> b, In<T> bias, int m, int n, int k, int transposeA, int transposeB, int epilogue, int slices, int each) {   \
    DYNAMIC_SHARED(Line, memory);                                                                                                         \
    Matrix<T> left = {a.at(), m, k, !transposeA}, right = {b.at(), n, k, transposeB != 0};                                                \
    Output<T> to = {out.at(), bias.at(), m, n, n, n, 0, epilogue};                                                                        \
    multiply<__VA_ARGS__>(left, right, to, Slices{k, slices, each}, (T*)memory);                                                          \
  }
