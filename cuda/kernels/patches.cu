// Patches (im2col): y[b (c r s) p q] = x[b c p*stride+r*dilation-pad q*stride+s*dilation-pad], 0
// outside x. One thread per element.
#include "pollen.cuh"

template <class T>
INLINE void patches(Out<T> y, In<T> x, int n, int H, int W, int R, int S, int P, int Q, int strideH, int strideW, int padH, int padW, int dilationH,
                    int dilationW) {
  for (int i = first(); i < n; i += step()) {
    // plane runs over (image, channel, r, s), channel over (image, channel).
    int q = i % Q, p = i / Q % P, plane = i / Q / P, s = plane % S, r = plane / S % R, channel = plane / S / R;
    int row = p * strideH + r * dilationH - padH, column = q * strideW + s * dilationW - padW;
    bool inside = row >= 0 && row < H && column >= 0 && column < W;
    y.at()[i] = inside ? x.at()[((long long)channel * H + row) * W + column] : T(0);
  }
}

#define PATCHES(T, suffix)                                                                                                                     \
  KERNEL(patches_fwd_##suffix, 256)                                                                                                            \
  (Out<T> y, In<T> x, int B, int C, int H, int W, int, int R, int S, int P, int Q, int sH, int sW, int pH, int pW, int dH, int dW) {           \
    patches(y, x, B * C * R * S * P * Q, H, W, R, S, P, Q, sH, sW, pH, pW, dH, dW);                                                            \
  }

PATCHES(float, f32)
PATCHES(double, f64)
