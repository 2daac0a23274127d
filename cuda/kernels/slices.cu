// The sum of a product's slices, partial [slices, n] -> out [n], in order, with the product's epilogue. Element i of out is given
// bias[i / inner % count].
#include "product.cuh"

template <class T>
INLINE void sumSlices(T* out, const T* partial, const T* bias, int n, int slices, int inner, int count, int epilogue) {
  for (int i = first(); i < n; i += step()) {
    const T* from = partial + i;
    T sum = *from;
    int slice = 1;
    // Sixteen at a time: the additions wait for each other, the loads need not.
    for (; slice + 16 <= slices; slice += 16) {
      T v[16];
#pragma unroll
      for (int j = 0; j < 16; j++) v[j] = from[(long long)(slice + j) * n];
#pragma unroll
      for (int j = 0; j < 16; j++) sum += v[j];
    }
    for (; slice < slices; slice++) sum += from[(long long)slice * n];
    out[i] = finish(sum, epilogue, bias, i / inner % count);
  }
}

KERNEL(slices_f32, 256)(Out<float> out, In<float> partial, In<float> bias, int n, int slices, int inner, int count, int epilogue) {
  sumSlices(out.at(), partial.at(), bias.at(), n, slices, inner, count, epilogue);
}
KERNEL(slices_f64, 256)(Out<double> out, In<double> partial, In<double> bias, int n, int slices, int inner, int count, int epilogue) {
  sumSlices(out.at(), partial.at(), bias.at(), n, slices, inner, count, epilogue);
}
