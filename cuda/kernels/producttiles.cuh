// Tiles of matrix products and convolutions with cp.async: fp32 on the CUDA cores, tf32 and bf16 on the
// tensor cores.
#pragma once

#include "tensorcore.cuh"
#include "tile.cuh"

// PRODUCT_TILES applies a macro to each. The tiles' arguments: Tile<T, rows, columns, depth of a
// stage, stages, rows and columns of a thread>, TensorTile<number, rows, columns, stages, rows and
// columns of a warp>.
#define PRODUCT_TILES(KERNEL_OF)                                        \
  KERNEL_OF(128x128_fp32, float, Tile<float, 128, 128, 16, 3, 8, 8>)    \
  KERNEL_OF(64x128_fp32, float, Tile<float, 64, 128, 16, 3, 8, 8>)      \
  KERNEL_OF(32x32_fp32, float, Tile<float, 32, 32, 16, 4, 4, 4>)        \
  KERNEL_OF(128x128_tf32, float, TensorTile<TF32, 128, 128, 4, 64, 64>) \
  KERNEL_OF(64x128_tf32, float, TensorTile<TF32, 64, 128, 4, 64, 32>)   \
  KERNEL_OF(64x64_tf32, float, TensorTile<TF32, 64, 64, 4, 32, 32>)     \
  KERNEL_OF(32x64_tf32, float, TensorTile<TF32, 32, 64, 4, 32, 32>)     \
  KERNEL_OF(64x32_tf32, float, TensorTile<TF32, 64, 32, 4, 32, 32>)     \
  KERNEL_OF(128x128_bf16, float, TensorTile<BF16, 128, 128, 4, 64, 64>) \
  KERNEL_OF(64x128_bf16, float, TensorTile<BF16, 64, 128, 4, 64, 32>)   \
  KERNEL_OF(64x64_bf16, float, TensorTile<BF16, 64, 64, 4, 32, 32>)     \
  KERNEL_OF(32x64_bf16, float, TensorTile<BF16, 32, 64, 4, 32, 32>)     \
  KERNEL_OF(64x32_bf16, float, TensorTile<BF16, 64, 32, 4, 32, 32>)
