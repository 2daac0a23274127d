// Probes of wgmma's operands, ldmatrix and bulk copies (probe_test.go). Memory x, small integers in bfloat16, is copied to the beginning of shared memory; what
// an instruction makes of it shows how it reads its operands. Products are added to y.
#include "hopper.cuh"

// fill stores x in shared memory, for products to read.
INLINE void fill(unsigned* memory, const unsigned* x, int bytes) {
  for (int i = threadIdx.x; i < bytes / 4; i += blockDim.x) memory[i] = x[i];
  fenceProxyAsync();
  barrier();
}

// load has a thread's sums from memory, which must be in their registers when the product begins.
INLINE void load(float (&d)[32], const float* y) {
  for (int i = 0; i < 32; i++) d[i] = y[threadIdx.x * 32 + i];
  wgmmaFence();
}

// store has a thread's sums side by side.
INLINE void store(float* y, const float (&d)[32]) {
  for (int i = 0; i < 32; i++) y[threadIdx.x * 32 + i] = d[i];
}

// Both operands are in shared memory, as in nhwcgroup.cuh: they begin at bytes a and b.
KERNEL(probe_shared, 128)
(InOut<float> y, In<unsigned> x, int bytes, int a, int depthA, int rowsA, int b, int depthB, int rowsB) {
  DYNAMIC_SHARED(AlignedShared, stages);
  fill((unsigned*)stages, x.at(), bytes);
  float d[32];
  load(d, y.at());
  wgmma(d, matrixDescriptor(stages, a, depthA, rowsA), matrixDescriptor(stages, b, depthB, rowsB));
  wgmmaCommit();
  wgmmaWait<0>();
  store(y.at(), d);
}

// The left operand is words of registers, four of each thread, the right one has its columns side by side.
KERNEL(probe_registers, 128)
(InOut<float> y, In<unsigned> x, In<unsigned> words, int bytes, int b, int depthB, int rowsB) {
  DYNAMIC_SHARED(AlignedShared, stages);
  fill((unsigned*)stages, x.at(), bytes);
  unsigned a[4];
  for (int i = 0; i < 4; i++) a[i] = words.at()[threadIdx.x * 4 + i];
  float d[32];
  load(d, y.at());
  wgmma(d, a, matrixDescriptor(stages, b, depthB, rowsB));
  wgmmaCommit();
  wgmmaWait<0>();
  store(y.at(), d);
}

// That with words that ldmatrix reads, as in nhwcgroupfilter.cuh: lines of 16 bytes from byte a on, the next eight rows across bytes further on.
KERNEL(probe_matrices, 128)
(InOut<float> y, Out<unsigned> words, In<unsigned> x, int bytes, int a, int across, int b, int depthB, int rowsB) {
  DYNAMIC_SHARED(AlignedShared, stages);
  fill((unsigned*)stages, x.at(), bytes);
  unsigned lane = threadIdx.x % 32, warp = threadIdx.x / 32, read[4];
  ldmatrixX4Trans(read, stages, a + 16 * (lane % 8 + lane / 16 * 8) + (2 * warp + lane / 8 % 2) * across);
  float d[32];
  load(d, y.at());
  wgmma(d, read, matrixDescriptor(stages, b, depthB, rowsB));
  wgmmaCommit();
  wgmmaWait<0>();
  store(y.at(), d);
  for (int i = 0; i < 4; i++) words.at()[threadIdx.x * 4 + i] = read[i];
}

// Some phases of a barrier, each for copies of bytes of x in pieces. If it expects more bytes than these, no phase ends.
KERNEL(probe_copies, 128)
(Out<unsigned> y, In<unsigned> x, int bytes, int piece, int phases, int more) {
  DYNAMIC_SHARED(AlignedShared, stages);
  auto* memory = (unsigned*)stages;
  auto* copied = (MBarrier*)(memory + bytes / 4);
  if (threadIdx.x == 0) {
    mbarrierInit(copied, 1);
    fenceProxyAsync();
  }
  barrier();
  for (int phase = 0; phase < phases; phase++) {
    const unsigned* from = x.at() + phase * bytes / 4;
    if (threadIdx.x == 0) {
      mbarrierArriveExpectTx(copied, bytes + more);
      for (int at = 0; at < bytes; at += piece) copyAsyncBulk(memory + at / 4, from + at / 4, bytes - at < piece ? bytes - at : piece, copied);
    }
    mbarrierWait(copied, phase & 1);
    for (int i = threadIdx.x; i < bytes / 4; i += blockDim.x) y.at()[phase * bytes / 4 + i] = memory[i];
    barrier();
  }
}
