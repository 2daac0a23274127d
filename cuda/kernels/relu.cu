// ReLU, y = max(0, x), and its gradient, from one dout or from the sum of two. NaN stays NaN.
//
// This file is the simplest example of a family of kernels: a template per operation, and for each
// type a KERNEL, whose symbol is the op's name, its direction and the type. The gradient reads y,
// not x: y > 0 exactly where x > 0, and then x need not be kept.
#include "quad.cuh"

// x <= 0 is false for NaN, which therefore passes through; x > 0 ? x : 0 would turn it into 0.
template <class T>
INLINE void reluForward(Out<T> y, In<T> x, int n) {
  map(y, n, [](T x) { return x <= 0 ? T(0) : x; }, x);
}

template <class T>
INLINE void reluBackward(Out<T> dx, In<T> dout, In<T> y, int n) {
  map(dx, n, [](T dout, T y) { return y > 0 ? dout : T(0); }, dout, y);
}

// reluBackwardSum is for a y with two users, whose gradients are a and b: the sum need not be
// stored.
template <class T>
INLINE void reluBackwardSum(Out<T> dx, In<T> a, In<T> b, In<T> y, int n) {
  map(dx, n, [](T a, T b, T y) { return y > 0 ? a + b : T(0); }, a, b, y);
}

KERNEL(relu_fwd_f32, 256)(Out<float> y, In<float> x, int n) { reluForward(y, x, n); }
KERNEL(relu_fwd_f64, 256)(Out<double> y, In<double> x, int n) { reluForward(y, x, n); }
KERNEL(relu_bwd_f32, 256)(Out<float> dx, In<float> dout, In<float> y, int n) { reluBackward(dx, dout, y, n); }
KERNEL(relu_bwd_f64, 256)(Out<double> dx, In<double> dout, In<double> y, int n) { reluBackward(dx, dout, y, n); }
KERNEL(relu_bwd_sum_f32, 256)(Out<float> dx, In<float> a, In<float> b, In<float> y, int n) { reluBackwardSum(dx, a, b, y, n); }
KERNEL(relu_bwd_sum_f64, 256)(Out<double> dx, In<double> a, In<double> b, In<double> y, int n) { reluBackwardSum(dx, a, b, y, n); }
