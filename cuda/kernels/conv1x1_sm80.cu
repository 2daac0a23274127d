// Convolutions of one tap with cp.async: fp32 on the CUDA cores, tf32 and bf16 on the tensor cores.
// The tiles are those of conv2d_sm80.cu.
#include "pixels.cuh"
#include "tensorcore.cuh"
#include "tile.cuh"

CONV1X1(128x128_fp32, float, Tile<float, 128, 128, 16, 3, 8, 8>)
CONV1X1(64x128_fp32, float, Tile<float, 64, 128, 16, 3, 8, 8>)
CONV1X1(32x32_fp32, float, Tile<float, 32, 32, 16, 4, 4, 4>)
CONV1X1(128x128_tf32, float, TensorTile<TF32, 128, 128, 4, 64, 64>)
CONV1X1(64x128_tf32, float, TensorTile<TF32, 64, 128, 4, 64, 32>)
CONV1X1(64x64_tf32, float, TensorTile<TF32, 64, 64, 4, 32, 32>)
CONV1X1(32x64_tf32, float, TensorTile<TF32, 32, 64, 4, 32, 32>)
CONV1X1(64x32_tf32, float, TensorTile<TF32, 64, 32, 4, 32, 32>)
CONV1X1(128x128_bf16, float, TensorTile<BF16, 128, 128, 4, 64, 64>)
CONV1X1(64x128_bf16, float, TensorTile<BF16, 64, 128, 4, 64, 32>)
CONV1X1(64x64_bf16, float, TensorTile<BF16, 64, 64, 4, 32, 32>)
CONV1X1(32x64_bf16, float, TensorTile<BF16, 32, 64, 4, 32, 32>)
CONV1X1(64x32_bf16, float, TensorTile<BF16, 64, 32, 4, 32, 32>)
