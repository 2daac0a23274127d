// 3 x 3 convolutions from 16 to 16 channels and from 32 to 32 (fewchannels.cuh): forward, the gradient
// by the image, and the gradient by the filter.
#include "fewchannels.cuh"

using Chunk = Vector<unsigned, 4>;

#define FEW(channels)                                                                                                                      \
  KERNEL(conv2d_few_##channels##_bf16, 256, 3)                                                                                             \
  (Out<float> y, In<float> x, In<unsigned> w, In<float> bias, int B, int height, int width, int rows, int backwards, int epilogue) {       \
    DYNAMIC_SHARED(Chunk, memory);                                                                                                         \
    FewForward<channels, channels>::run(y.at(), x.at(), w.at(), bias.at(), B, height, width, rows, backwards, epilogue, (unsigned*)memory); \
  }                                                                                                                                        \
  KERNEL(conv2d_few_filter_##channels##_bf16, (FewFilter<channels, channels>::threads), (FewFilter<channels, channels>::blocks))           \
  (Out<float> partial, In<float> dout, In<float> x, int B, int height, int width, int rows) {                                             \
    DYNAMIC_SHARED(Chunk, memory);                                                                                                         \
    FewFilter<channels, channels>::run(partial.at(), dout.at(), x.at(), B, height, width, rows, (unsigned*)memory);                        \
  }

FEW(16)
FEW(32)
