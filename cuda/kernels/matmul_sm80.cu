// Matrix products with cp.async. matmul_64x128_tf32 computes tiles of 64 x 128.
#include "matmul.cuh"
#include "producttiles.cuh"

#define MATMUL_OF(suffix, ...) MATMUL(matmul_##suffix, __VA_ARGS__)
PRODUCT_TILES(MATMUL_OF)

// These have two groups of threads, which compute two slices of the depth at once.
MATMUL(matmul_128x128x2_tf32, float, TensorTile<TF32, 128, 128, 4, 64, 64, 2>)
MATMUL(matmul_64x64x2_tf32, float, TensorTile<TF32, 64, 64, 4, 32, 32, 2>)
MATMUL(matmul_128x128x2_bf16, float, TensorTile<BF16, 128, 128, 4, 64, 64, 2>)
MATMUL(matmul_64x64x2_bf16, float, TensorTile<BF16, 64, 64, 4, 32, 32, 2>)
