// Convolutions on the tensor cores.
#include "conv2d.cuh"
#include "tensorcore.cuh"

CONV2D(128x128_tf32, float, TensorTile<TF32, 128, 128, 64, 32>)
CONV2D(64x128_tf32, float, TensorTile<TF32, 64, 128, 64, 32>)
CONV2D(64x64_tf32, float, TensorTile<TF32, 64, 64, 32, 32>)
CONV2D(32x64_tf32, float, TensorTile<TF32, 32, 64, 32, 32>)
CONV2D(128x128_bf16, float, TensorTile<BF16, 128, 128, 64, 32>)
CONV2D(64x128_bf16, float, TensorTile<BF16, 64, 128, 64, 32>)
CONV2D(64x64_bf16, float, TensorTile<BF16, 64, 64, 32, 32>)
CONV2D(32x64_bf16, float, TensorTile<BF16, 32, 64, 32, 32>)
