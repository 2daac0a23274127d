// The sum of a product's slices, partial [slices, n] -> out [n], in order, with the product's epilogue: out is [n / 4] and so is which if that pools.
// Element i of the sum is given bias[i / inner % count].
#include "product.cuh"

// sumSlices adds the slices of width elements, n apart.
template <int width, class T>
INLINE Vector<T, width> sumSlices(const T* partial, int n, int slices) {
  using Some = Vector<T, width>;
  constexpr int together = 16 / width;
  Some sum = *(const Some*)partial;
  int slice = 1;
  // Many at a time: the additions wait for each other, the loads need not.
  for (; slice + together <= slices; slice += together) {
    Some v[together];
#pragma unroll
    for (int j = 0; j < together; j++) v[j] = *(const Some*)(partial + (long long)(slice + j) * n);
#pragma unroll
    for (int j = 0; j < together; j++)
#pragma unroll
      for (int k = 0; k < width; k++) sum.v[k] += v[j].v[k];
  }
  for (; slice < slices; slice++) {
    Some v = *(const Some*)(partial + (long long)slice * n);
#pragma unroll
    for (int k = 0; k < width; k++) sum.v[k] += v.v[k];
  }
  return sum;
}

template <class T>
INLINE void sumAll(Out<T> out, const T* partial, const T* bias, Out<unsigned char> which, int n, int slices, int inner, int count, int epilogue) {
  if (epilogue & withPool) {
    for (int i = first(); i < n / 4; i += step()) {
      auto sum = sumSlices<4>(partial + 4 * i, n, slices);
#pragma unroll
      for (int j = 0; j < 4; j++) sum.v[j] = finish(sum.v[j], epilogue, bias, 4 * i / inner % count);
      Pooled<T>{out, which}.store(i, sum.v, epilogue);
    }
    return;
  }
  for (int i = first(); i < n; i += step()) out.at()[i] = finish(sumSlices<1>(partial + i, n, slices).v[0], epilogue, bias, i / inner % count);
}

#define SLICES(suffix, T)                                                                                                    \
  KERNEL(slices_##suffix, 256)                                                                                               \
  (Out<T> out, In<T> partial, In<T> bias, Out<unsigned char> which, int n, int slices, int inner, int count, int epilogue) { \
    sumAll(out, partial.at(), bias.at(), which, n, slices, inner, count, epilogue);                                          \
  }

SLICES(f32, float)
SLICES(f64, double)
