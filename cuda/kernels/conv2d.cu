// Convolutions on the CUDA cores, with operands staged through registers. The float32 ones are for
// GPUs before sm_80.
#include "conv2d.cuh"
#include "tile.cuh"

CONV2D(128x128_f32, float, Tile<float, 128, 128, 8, 2, 8, 8>)
CONV2D(64x64_f32, float, Tile<float, 64, 64, 16, 2, 4, 4>)
CONV2D(32x32_f32, float, Tile<float, 32, 32, 16, 2, 4, 4>)
CONV2D(32x32_f64, double, Tile<double, 32, 32, 16, 2, 4, 4>)
