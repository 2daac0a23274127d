// ReLU, y = max(0, x), and its gradient. A NaN stays one.
#include "pollen.cuh"

template <class T>
__device__ void reluForward(Out<T> y, In<T> x, int n) {
  for (int i = first(); i < n; i += step()) y.at()[i] = x.at()[i] <= 0 ? T(0) : x.at()[i];
}

template <class T>
__device__ void reluBackward(Out<T> dx, In<T> dout, In<T> y, int n) {
  for (int i = first(); i < n; i += step()) dx.at()[i] = y.at()[i] > 0 ? dout.at()[i] : T(0);
}

KERNEL(relu_fwd_f32, 256)(Out<float> y, In<float> x, int n) { reluForward(y, x, n); }
KERNEL(relu_fwd_f64, 256)(Out<double> y, In<double> x, int n) { reluForward(y, x, n); }
KERNEL(relu_bwd_f32, 256)(Out<float> dx, In<float> dout, In<float> y, int n) { reluBackward(dx, dout, y, n); }
KERNEL(relu_bwd_f64, 256)(Out<double> dx, In<double> dout, In<double> y, int n) { reluBackward(dx, dout, y, n); }
