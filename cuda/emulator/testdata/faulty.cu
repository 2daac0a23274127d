// Kernels with one mistake each, and some correct ones, for the tests of the checks that find
// mistakes.
#include "pollen.cuh"

// right reverses each block's part of x through shared memory.
KERNEL(right_f32, 64)(Out<float> y, In<float> x, int n) {
  SHARED(float, memory, 64);
  int i = first();
  memory[threadIdx.x] = i < n ? x.at()[i] : 0;
  barrier();
  if (i < n) y.at()[i] = memory[63 - threadIdx.x];
}

KERNEL(no_barrier_f32, 64)(Out<float> y, In<float> x, int n) {
  SHARED(float, memory, 64);
  int i = first();
  memory[threadIdx.x] = i < n ? x.at()[i] : 0;
  if (i < n) y.at()[i] = memory[63 - threadIdx.x];
}

KERNEL(warp_only_f32, 64)(Out<float> y, In<float> x, int n) {
  SHARED(float, memory, 64);
  int i = first();
  memory[threadIdx.x] = i < n ? x.at()[i] : 0;
  warpBarrier();
  if (i < n) y.at()[i] = memory[63 - threadIdx.x];
}

// Both blocks write the same element.
KERNEL(same_place_f32, 64)(Out<float> y, In<float> x, int n) {
  if (first() < n) y.at()[threadIdx.x] = x.at()[first()];
}

KERNEL(outside_f32, 64)(Out<float> y, In<float> x, int n) {
  if (first() < n) y.at()[first()] = x.at()[first() + 1];
}

KERNEL(outside_shared_f32, 64)(Out<float> y, In<float> x, int n) {
  SHARED(float, memory, 64);
  memory[threadIdx.x] = 1;
  barrier();
  if (first() < n) y.at()[first()] = x.at()[first()] + memory[threadIdx.x + 1];
}

KERNEL(unaligned_f32, 64)(Out<float> y, In<float> x, int n) {
  if (first() < n - 1) *(double*)&y.at()[first()] = x.at()[first()];
}

KERNEL(divergent_f32, 64)(Out<float> y, In<float> x, int n) {
  if (threadIdx.x < 40) barrier();
  if (first() < n) y.at()[first()] = x.at()[first()];
}

KERNEL(mixed_f32, 64)(Out<float> y, In<float> x, int n) {
  float v = x.at()[0];
  if (threadIdx.x % 32 < 16) warpBarrier();
  else v = shuffleXor(v, 1);
  if (first() < n) y.at()[first()] = v;
}

// stack_f32 is correct: a thread's local array may lie where the last thread's was.
KERNEL(stack_f32, 64)(Out<float> y, In<float> x, int n) {
  float own[16];
  for (int i = 0; i < 16; i++) own[(i + threadIdx.x) % 16] = x.at()[(first() + i) % n];
  if (first() < n) y.at()[first()] = own[threadIdx.x % 16] + own[n % 16];
}

// complain waits for a barrier that no other thread reaches, if v is what shared memory holds
// before a copy has arrived.
INLINE void complain(float v) {
  if (v != v) barrier();
}

// copied_f32 is correct.
KERNEL(copied_f32, 64)(Out<float> y, In<float> x, int n) {
  SHARED(float, memory, 64);
  int i = first();
  copyAsync4(memory + threadIdx.x, x.at() + i, i < n);
  copyAsyncCommit();
  copyAsyncWait<0>();
  barrier();
  float v = memory[63 - threadIdx.x];
  complain(v);
  if (i < n) y.at()[i] = v;
}

// The first group is not waited for.
KERNEL(copy_without_wait_f32, 64)(Out<float> y, In<float> x, int n) {
  SHARED(float, memory, 64);
  int i = first();
  copyAsync4(memory + threadIdx.x, x.at() + i, i < n);
  copyAsyncCommit();
  copyAsyncWait<1>();
  barrier();
  float v = memory[63 - threadIdx.x];
  if (threadIdx.x == 0) complain(v);
  if (i < n) y.at()[i] = v;
}

KERNEL(copy_without_barrier_f32, 64)(Out<float> y, In<float> x, int n) {
  SHARED(float, memory, 64);
  int i = first();
  copyAsync4(memory + threadIdx.x, x.at() + i, i < n);
  copyAsyncCommit();
  copyAsyncWait<0>();
  float v = memory[63 - threadIdx.x];
  if (i < n) y.at()[i] = v;
}

// A thread copies over memory that others still read.
KERNEL(copy_too_early_f32, 64)(Out<float> y, In<float> x, int n) {
  SHARED(float, memory, 64);
  int i = first();
  memory[threadIdx.x] = 1;
  barrier();
  float v = memory[63 - threadIdx.x];
  copyAsync4(memory + threadIdx.x, x.at() + i, i < n);
  copyAsyncCommit();
  copyAsyncWait<0>();
  if (i < n) y.at()[i] = v + memory[threadIdx.x];
}
