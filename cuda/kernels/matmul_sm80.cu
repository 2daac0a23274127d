// Matrix products on the tensor cores.
#include "matmul.cuh"
#include "tensorcore.cuh"

MATMUL(matmul_128x128_tf32, float, TensorTile<TF32, 128, 128, 64, 32>)
MATMUL(matmul_64x128_tf32, float, TensorTile<TF32, 64, 128, 64, 32>)
MATMUL(matmul_64x64_tf32, float, TensorTile<TF32, 64, 64, 32, 32>)
MATMUL(matmul_32x64_tf32, float, TensorTile<TF32, 32, 64, 32, 32>)
MATMUL(matmul_128x128_bf16, float, TensorTile<BF16, 128, 128, 64, 32>)
MATMUL(matmul_64x128_bf16, float, TensorTile<BF16, 64, 128, 64, 32>)
MATMUL(matmul_64x64_bf16, float, TensorTile<BF16, 64, 64, 32, 32>)
MATMUL(matmul_32x64_bf16, float, TensorTile<BF16, 32, 64, 32, 32>)
