// Gathers a step's examples from a data set, and scatters rows back into one.
#include "affine.cuh"
#include "batch.cuh"

struct alignas(4) Pixels {
  unsigned char v[4];
};

// maxRows is the maximum number of images per block.
constexpr int maxRows = 32;

// gatherImages scales and shifts the bytes of the batch's images, some images per block, four
// pixels per thread if planes are multiples of four. Finding an image's example takes hundreds of
// instructions, so one thread per image does it for the block.
template <class T>
INLINE void gatherImages(Out<T> y, In<unsigned char> images, Header header, int examples, int size, int pixels, int order, const Affine<T>& f) {
  // Images are spread evenly over the blocks, rows to each.
  SHARED(int, chosen, maxRows);
  int rows = (size + gridDim.x - 1) / gridDim.x, begin = blockIdx.x * rows, count = size - begin < rows ? size - begin : rows;
  if ((int)threadIdx.x < count) chosen[threadIdx.x] = exampleOf(header, begin + threadIdx.x, size, examples, order);
  barrier();
  for (int row = 0; row < count; row++) {
    const unsigned char* from = images.at() + (long long)chosen[row] * pixels;
    T* to = y.at() + (long long)(begin + row) * pixels;
    if (pixels % 4 == 0 && f.plane % 4 == 0) {
      for (int i = 4 * threadIdx.x; i < pixels; i += 4 * blockDim.x) {
        Pixels x = *(const Pixels*)(from + i);
        T scale = f.scale(i), shift = f.shift(i);
        Quad<T> q;
#pragma unroll
        for (int k = 0; k < 4; k++) q.v[k] = T(x.v[k]) * scale + shift;
        store(to, i, 4, q);
      }
    } else {
      for (int i = threadIdx.x; i < pixels; i += blockDim.x) to[i] = T(from[i]) * f.scale(i) + f.shift(i);
    }
  }
}

// Labels, and rows of floats, are gathered by one thread per element, each of which finds the
// example itself: a step has few of them.
INLINE void gatherLabels(Out<int> y, In<int> labels, Header header, int examples, int size, int order) {
  for (int i = first(); i < size; i += step()) y.at()[i] = labels.at()[exampleOf(header, i, size, examples, order)];
}

template <class T>
INLINE void gatherRows(Out<T> y, In<T> all, Header header, int examples, int size, int width, int order) {
  for (int i = first(); i < size * width; i += step())
    y.at()[i] = all.at()[(long long)exampleOf(header, i / width, size, examples, order) * width + i % width];
}

// storeRows writes the batch's rows to the rows of their examples, in the order of the data set.
template <class T>
INLINE void storeRows(Out<T> y, In<T> rows, InOut<T> all, Header header, int examples, int size, int width) {
  if (first() == 0) y.at()[0] = T(size);
  for (int i = first(); i < size * width; i += step())
    all.at()[(long long)exampleOf(header, i / width, size, examples, false) * width + i % width] = rows.at()[i];
}

#define GATHER(T, suffix)                                                                                                                    \
  KERNEL(gather_images_##suffix, 256)                                                                                                        \
  (Out<T> y, In<unsigned char> images, Header header, int examples, int size, int pixels, int order, AFFINE(T)) {                            \
    gatherImages(y, images, header, examples, size, pixels, order, AFFINE_OF(T));                                                            \
  }                                                                                                                                          \
  KERNEL(gather_labels_##suffix, 256)(Out<int> y, In<int> labels, Header header, int examples, int size, int order) {                         \
    gatherLabels(y, labels, header, examples, size, order);                                                                                   \
  }                                                                                                                                           \
  KERNEL(gather_rows_##suffix, 256)(Out<T> y, In<T> all, Header header, int examples, int size, int width, int order) {                       \
    gatherRows(y, all, header, examples, size, width, order);                                                                                 \
  }                                                                                                                                           \
  KERNEL(store_rows_##suffix, 256)(Out<T> y, In<T> rows, InOut<T> all, Header header, int examples, int size, int width) {                    \
    storeRows(y, rows, all, header, examples, size, width);                                                                                   \
  }

// The examples of a step's batch, for kernels that read images from the data set.
KERNEL(gather_examples, 256)(Out<int> y, Header header, int examples, int size, int order) {
  for (int i = first(); i < size; i += step()) y.at()[i] = exampleOf(header, i, size, examples, order);
}

GATHER(float, f32)
GATHER(double, f64)
