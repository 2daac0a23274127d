// A step's examples out of a data set, and rows back into one.
#include "batch.cuh"

struct alignas(4) Pixels {
  unsigned char v[4];
};

// mostRows is the most images of a block.
constexpr int mostRows = 32;

// gatherImages is y = x scale + shift for the bytes x of the batch's images: some images to a block, four pixels to a thread when they come in fours.
// Which example an image is takes hundreds of instructions: a thread finds it for all.
template <class T>
INLINE void gatherImages(Out<T> y, In<unsigned char> images, Header header, int examples, int size, int pixels, int shuffled, T scale, T shift) {
  SHARED(int, chosen, mostRows);
  int rows = (size + gridDim.x - 1) / gridDim.x, begin = blockIdx.x * rows, count = size - begin < rows ? size - begin : rows;
  if ((int)threadIdx.x < count) chosen[threadIdx.x] = exampleOf(header, begin + threadIdx.x, size, examples, shuffled);
  barrier();
  for (int row = 0; row < count; row++) {
    const unsigned char* from = images.at() + (long long)chosen[row] * pixels;
    T* to = y.at() + (long long)(begin + row) * pixels;
    if (pixels % 4 == 0) {
      for (int i = 4 * threadIdx.x; i < pixels; i += 4 * blockDim.x) {
        Pixels x = *(const Pixels*)(from + i);
        Quad<T> q;
#pragma unroll
        for (int k = 0; k < 4; k++) q.v[k] = T(x.v[k]) * scale + shift;
        store(to, i, 4, q);
      }
    } else {
      for (int i = threadIdx.x; i < pixels; i += blockDim.x) to[i] = T(from[i]) * scale + shift;
    }
  }
}

INLINE void gatherLabels(Out<int> y, In<unsigned char> labels, Header header, int examples, int size, int shuffled) {
  for (int i = first(); i < size; i += step()) y.at()[i] = labels.at()[exampleOf(header, i, size, examples, shuffled)];
}

template <class T>
INLINE void gatherRows(Out<T> y, In<T> all, Header header, int examples, int size, int width, int shuffled) {
  for (int i = first(); i < size * width; i += step())
    y.at()[i] = all.at()[(long long)exampleOf(header, i / width, size, examples, shuffled) * width + i % width];
}

// storeRows puts the batch's rows where their examples' rows are, in the order of the data set.
template <class T>
INLINE void storeRows(Out<T> y, In<T> rows, InOut<T> all, Header header, int examples, int size, int width) {
  if (first() == 0) y.at()[0] = T(size);
  for (int i = first(); i < size * width; i += step())
    all.at()[(long long)exampleOf(header, i / width, size, examples, false) * width + i % width] = rows.at()[i];
}

#define GATHER(T, suffix)                                                                                                                     \
  KERNEL(gather_images_##suffix, 256)                                                                                                         \
  (Out<T> y, In<unsigned char> images, Header header, int examples, int size, int pixels, int shuffled, T scale, T shift) {                   \
    gatherImages(y, images, header, examples, size, pixels, shuffled, scale, shift);                                                          \
  }                                                                                                                                           \
  KERNEL(gather_labels_##suffix, 256)(Out<int> y, In<unsigned char> labels, Header header, int examples, int size, int shuffled) {            \
    gatherLabels(y, labels, header, examples, size, shuffled);                                                                                \
  }                                                                                                                                           \
  KERNEL(gather_rows_##suffix, 256)(Out<T> y, In<T> all, Header header, int examples, int size, int width, int shuffled) {                    \
    gatherRows(y, all, header, examples, size, width, shuffled);                                                                              \
  }                                                                                                                                           \
  KERNEL(store_rows_##suffix, 256)(Out<T> y, In<T> rows, InOut<T> all, Header header, int examples, int size, int width) {                    \
    storeRows(y, rows, all, header, examples, size, width);                                                                                   \
  }

GATHER(float, f32)
GATHER(double, f64)
