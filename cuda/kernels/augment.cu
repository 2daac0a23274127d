// Random rotation, zoom, shift, mirroring, contrast, brightness and cutout of images, as op.Augment
// defines them:
//
//	y[b c p q] = contrast x[b c u v] + brightness, bilinear, x being 0 beyond the edges
//
// A block has some images: first one thread per image draws its transform, then the threads take
// pixels, each in all channels. A pixel costs its loads (four with rotation or zoom, mostly
// from the cache), a store, and some 30 operations that the channels share.
#include "philox.cuh"

// maxRows is the maximum number of images per block.
constexpr int maxRows = 32;

// Transform is the transform of an image. The zeroed square may begin above or left of the image.
template <class T>
struct Transform {
  int mirrored, rows, columns, top, left;
  T cosine, sine;  // divided by the enlargement
  T contrast, brightness;
};

// Changes are the options of op.Augment.
template <class T>
struct Changes {
  int flip, shift;
  T quarter, zoom, contrast, brightness;
  int side;
};

// uniformBelow maps a random word to 0 ... n-1.
INLINE int uniformBelow(unsigned word, int n) { return (int)((unsigned long long)word * n >> 32); }

// cosSinOf4 computes cos(4 t) and sin(4 t) with the same operations as graph/op/augment.go: Taylor
// series for t, then two doublings of the angle.
//
// The host and the GPU must rotate by the same angle to the bit, and the sines of C libraries
// differ in the last digit. So the functions are written out, in operations that IEEE 754 defines.
template <class T>
INLINE void cosSinOf4(T t, T* cosine, T* sine) {
  T square = t * t, even = 1, odd = 1;
#pragma unroll
  for (int k = 16; k >= 2; k -= 2) even = 1 - square * even * (T(1) / (k * (k - 1)));
#pragma unroll
  for (int k = 14; k >= 2; k -= 2) odd = 1 - square * odd * (T(1) / (k * (k + 1)));
  T c = even, s = t * odd;
#pragma unroll
  for (int i = 0; i < 2; i++) {
    T twice = 2 * (s * c);
    c = 1 - 2 * (s * s);
    s = twice;
  }
  *cosine = c;
  *sine = s;
}

// fraction maps a number of some bits, at most 24, to a number above -1 and at most 1.
template <class T>
INLINE T fraction(unsigned word, int bits) {
  T half = T(1 << (bits - 1));
  return (T(word) + 1 - half) / half;
}

// factor maps numbers from -1 to 1 to factors from 1/(1+most) to 1+most.
template <class T>
INLINE T factor(T share, T most) {
  return share < 0 ? 1 / (1 - share * most) : 1 + share * most;
}

// transformOf draws the transform of an image from two blocks of Philox words, whose address is
// the image's place in the minibatch. All words are drawn whatever the options are, so that
// switching one option off leaves the other choices as they were.
template <class T>
INLINE Transform<T> transformOf(const Address& a, int image, int H, int W, const Changes<T>& g) {
  Quad<unsigned> w = philox(a, 2 * image), v = philox(a, 2 * image + 1);
  Transform<T> c;
  c.mirrored = g.flip && w.v[0] >> 31;
  c.rows = uniformBelow(w.v[1], 2 * g.shift + 1) - g.shift;
  c.columns = uniformBelow(w.v[2], 2 * g.shift + 1) - g.shift;
  c.top = uniformBelow(v.v[0], H) - g.side / 2;
  c.left = uniformBelow(v.v[1], W) - g.side / 2;
  cosSinOf4(fraction<T>(w.v[3] >> 8, 24) * g.quarter, &c.cosine, &c.sine);
  T shrink = factor(fraction<T>(v.v[2] >> 8, 24), g.zoom);
  c.cosine *= shrink;
  c.sine *= shrink;
  c.contrast = factor(fraction<T>(v.v[3] >> 16, 16), g.contrast);
  c.brightness = fraction<T>(v.v[3] & 0xffff, 16) * g.brightness;
  return c;
}

// floorToInt returns the largest integer that is at most x.
template <class T>
INLINE int floorToInt(T x) {
  int i = (int)x;
  return x < T(i) ? i - 1 : i;
}

// augment gives each block a range of consecutive images. The transform costs some hundred
// operations, so one thread computes it for all pixels of the image and passes it on in shared
// memory.
template <class T>
INLINE void augment(Out<T> y, In<T> x, Header header, int B, int C, int H, int W, Changes<T> g, unsigned stream) {
  SHARED(Transform<T>, transforms, maxRows);
  int rows = (B + gridDim.x - 1) / gridDim.x, begin = blockIdx.x * rows, count = B - begin < rows ? B - begin : rows;
  if ((int)threadIdx.x < count)
    transforms[threadIdx.x] = transformOf(addressOf(header, stream), begin + threadIdx.x, H, W, g);
  barrier();
  int plane = H * W;
  bool between = g.quarter != 0 || g.zoom != 0, values = g.contrast != 0 || g.brightness != 0;
  T middleRow = T(H - 1) / 2, middleColumn = T(W - 1) / 2;
  for (int row = 0; row < count; row++) {
    Transform<T> c = transforms[row];
    const T* from = x.at() + (long long)(begin + row) * C * plane;
    T* to = y.at() + (long long)(begin + row) * C * plane;
    for (int at = threadIdx.x; at < plane; at += blockDim.x) {
      int p = at / W, q = at % W, i = p - c.rows, j = (c.mirrored ? W - 1 - q : q) - c.columns;
      bool kept = p < c.top || p >= c.top + g.side || q < c.left || q >= c.left + g.side;
      auto put = [&](int k, T value) { to[k + at] = values && kept ? c.contrast * value + c.brightness : value; };
      if (!between) {
        bool there = kept && i >= 0 && i < H && j >= 0 && j < W;
        for (int k = 0; k < C * plane; k += plane) put(k, loadIf(there, from + k + i * W + j));
        continue;
      }
      // The transform maps output pixels to input pixels, so each output pixel is computed once.
      T a = T(i) - middleRow, b = T(j) - middleColumn;
      T u = middleRow + c.cosine * a - c.sine * b, v = middleColumn + c.sine * a + c.cosine * b;
      i = floorToInt(u), j = floorToInt(v);
      T down = u - T(i), right = v - T(j);
      bool upper = kept && i >= 0 && i < H, lower = kept && i >= -1 && i < H - 1;
      bool left = j >= 0 && j < W, after = j >= -1 && j < W - 1;
      for (int k = 0; k < C * plane; k += plane) {
        const T* f = from + k + i * W + j;
        T x00 = loadIf(upper && left, f), x01 = loadIf(upper && after, f + 1);
        T x10 = loadIf(lower && left, f + W), x11 = loadIf(lower && after, f + W + 1);
        T high = (1 - right) * x00 + right * x01, low = (1 - right) * x10 + right * x11;
        put(k, (1 - down) * high + down * low);
      }
    }
  }
}

#define AUGMENT(T, suffix)                                                                                                            \
  KERNEL(augment_fwd_##suffix, 256)                                                                                                   \
  (Out<T> y, In<T> x, Header header, int B, int C, int H, int W, int flip, int shift, T quarter, T zoom, T contrast, T brightness,    \
   int side, unsigned stream) {                                                                                                       \
    augment(y, x, header, B, C, H, W, Changes<T>{flip, shift, quarter, zoom, contrast, brightness, side}, stream);                     \
  }

AUGMENT(float, f32)
AUGMENT(double, f64)
