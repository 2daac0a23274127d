// Matrix products with cp.async: fp32 on the CUDA cores, tf32 and bf16 on the tensor cores.
// matmul_64x128_tf32 computes tiles of 64 x 128.
#include "matmul.cuh"
#include "tensorcore.cuh"
#include "tile.cuh"

// The tiles' arguments: Tile<T, rows, columns, depth of a stage, stages, rows and columns of a
// thread>, TensorTile<number, rows, columns, stages, rows and columns of a warp>.
MATMUL(matmul_128x128_fp32, float, Tile<float, 128, 128, 16, 3, 8, 8>)
MATMUL(matmul_64x128_fp32, float, Tile<float, 64, 128, 16, 3, 8, 8>)
MATMUL(matmul_32x32_fp32, float, Tile<float, 32, 32, 16, 4, 4, 4>)
MATMUL(matmul_128x128_tf32, float, TensorTile<TF32, 128, 128, 4, 64, 64>)
MATMUL(matmul_64x128_tf32, float, TensorTile<TF32, 64, 128, 4, 64, 32>)
MATMUL(matmul_64x64_tf32, float, TensorTile<TF32, 64, 64, 4, 32, 32>)
MATMUL(matmul_32x64_tf32, float, TensorTile<TF32, 32, 64, 4, 32, 32>)
MATMUL(matmul_64x32_tf32, float, TensorTile<TF32, 64, 32, 4, 32, 32>)
MATMUL(matmul_128x128_bf16, float, TensorTile<BF16, 128, 128, 4, 64, 64>)
MATMUL(matmul_64x128_bf16, float, TensorTile<BF16, 64, 128, 4, 64, 32>)
MATMUL(matmul_64x64_bf16, float, TensorTile<BF16, 64, 64, 4, 32, 32>)
MATMUL(matmul_32x64_bf16, float, TensorTile<BF16, 32, 64, 4, 32, 32>)
MATMUL(matmul_64x32_bf16, float, TensorTile<BF16, 64, 32, 4, 32, 32>)
// These have two groups of threads, which compute two slices of the depth at once.
MATMUL(matmul_128x128x2_tf32, float, TensorTile<TF32, 128, 128, 4, 64, 64, 2>)
MATMUL(matmul_64x64x2_tf32, float, TensorTile<TF32, 64, 64, 4, 32, 32, 2>)
MATMUL(matmul_128x128x2_bf16, float, TensorTile<BF16, 128, 128, 4, 64, 64, 2>)
MATMUL(matmul_64x64x2_bf16, float, TensorTile<BF16, 64, 64, 4, 32, 32, 2>)
