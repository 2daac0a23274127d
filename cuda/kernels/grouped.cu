// Convolutions within groups of channels, x [B C H W], w [K C/groups R S] -> y [B K P Q], and their
// gradients. C and K in the arguments are those of one group.
//
// Depthwise convolutions, for which these kernels are written, read each operand R S times only: a
// thread per element is limited by memory, and tiles in shared memory, as for a product, would not
// help. The sums are in the program's float, except those of the filter's gradient, which are long.
#include "reduce.cuh"

// Group has the sizes of one group's convolution.
struct Group {
  int B, C, H, W, K, R, S, P, Q, strideH, strideW, padH, padW, dilationH, dilationW, groups;
};

// A thread per output: it reads the window of each channel of the group.
template <class T>
INLINE void groupedForward(Out<T> y, In<T> x, In<T> w, const T* bias, const Group& g, T low, T high) {
  int filters = g.groups * g.K, n = g.B * filters * g.P * g.Q;
  for (int i = first(); i < n; i += step()) {
    int q = i % g.Q, p = i / g.Q % g.P, plane = i / g.Q / g.P, k = plane % filters, b = plane / filters;
    int top = p * g.strideH - g.padH, left = q * g.strideW - g.padW;
    T sum = 0;
    for (int c = 0; c < g.C; c++) {
      const T* image = x.at() + ((long long)(b * g.groups + k / g.K) * g.C + c) * g.H * g.W;
      const T* filter = w.at() + (k * g.C + c) * g.R * g.S;
      for (int r = 0; r < g.R; r++) {
        int row = top + r * g.dilationH;
        if (row < 0 || row >= g.H) continue;
        for (int s = 0; s < g.S; s++) {
          int column = left + s * g.dilationW;
          if (column >= 0 && column < g.W) sum += filter[r * g.S + s] * image[row * g.W + column];
        }
      }
    }
    if (bias) sum += bias[k];
    // Comparisons, not minima: NaN stays.
    if (sum < low) sum = low;
    if (sum > high) sum = high;
    y.at()[i] = sum;
  }
}

// A thread per input: of each tap it finds the output, if any, whose window has the input there.
template <class T>
INLINE void groupedBackwardInput(Out<T> dx, In<T> dout, In<T> w, const Group& g) {
  int channels = g.groups * g.C, n = g.B * channels * g.H * g.W;
  for (int i = first(); i < n; i += step()) {
    int column = i % g.W, row = i / g.W % g.H, plane = i / g.W / g.H, channel = plane % channels, b = plane / channels;
    int group = channel / g.C, c = channel % g.C;
    T sum = 0;
    for (int k = group * g.K; k < (group + 1) * g.K; k++) {
      const T* from = dout.at() + (long long)(b * g.groups * g.K + k) * g.P * g.Q;
      const T* filter = w.at() + (k * g.C + c) * g.R * g.S;
      for (int r = 0; r < g.R; r++) {
        int down = row + g.padH - r * g.dilationH;
        if (down < 0 || down % g.strideH != 0 || down / g.strideH >= g.P) continue;
        for (int s = 0; s < g.S; s++) {
          int across = column + g.padW - s * g.dilationW;
          if (across < 0 || across % g.strideW != 0 || across / g.strideW >= g.Q) continue;
          sum += filter[r * g.S + s] * from[down / g.strideH * g.Q + across / g.strideW];
        }
      }
    }
    dx.at()[i] = sum;
  }
}

// A block per tap, whose threads share the images and outputs.
template <class T>
INLINE void groupedBackwardFilter(Out<T> dw, In<T> dout, In<T> x, const Group& g) {
  int area = g.P * g.Q;
  rowSums(dw, g.groups * g.K * g.C * g.R * g.S, g.B * area, 1, [&](int tap, int t) INLINED {
    int s = tap % g.S, r = tap / g.S % g.R, c = tap / g.S / g.R % g.C, k = tap / g.S / g.R / g.C;
    int b = t / area, p = t % area / g.Q, q = t % g.Q;
    int row = p * g.strideH + r * g.dilationH - g.padH, column = q * g.strideW + s * g.dilationW - g.padW;
    if (row < 0 || row >= g.H || column < 0 || column >= g.W) return 0.0;
    double pixel = x.at()[(((long long)(b * g.groups + k / g.K) * g.C + c) * g.H + row) * g.W + column];
    return pixel * (double)dout.at()[(long long)(b * g.groups * g.K + k) * area + t % area];
  });
}

#define GROUP int B, int C, int H, int W, int K, int R, int S, int P, int Q, int sH, int sW, int pH, int pW, int dH, int dW, int groups
#define GROUP_OF (Group{B, C, H, W, K, R, S, P, Q, sH, sW, pH, pW, dH, dW, groups})

#define GROUPED(T, suffix)                                                                                                                \
  KERNEL(grouped_conv2d_fwd_##suffix, 256)(Out<T> y, In<T> x, In<T> w, GROUP, T low, T high) {                                            \
    groupedForward(y, x, w, (const T*)nullptr, GROUP_OF, low, high);                                                                      \
  }                                                                                                                                       \
  KERNEL(grouped_conv2d_bias_fwd_##suffix, 256)(Out<T> y, In<T> x, In<T> w, In<T> bias, GROUP, T low, T high) {                           \
    groupedForward(y, x, w, bias.at(), GROUP_OF, low, high);                                                                              \
  }                                                                                                                                       \
  KERNEL(grouped_conv2d_bwd_input_##suffix, 256)(Out<T> dx, In<T> dout, In<T> w, GROUP) { groupedBackwardInput(dx, dout, w, GROUP_OF); }  \
  KERNEL(grouped_conv2d_bwd_filter_##suffix, 256)(Out<T> dw, In<T> dout, In<T> x, GROUP) { groupedBackwardFilter(dw, dout, x, GROUP_OF); }

GROUPED(float, f32)
GROUPED(double, f64)
