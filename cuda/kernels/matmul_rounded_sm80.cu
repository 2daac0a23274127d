// Matrix products in bf16 for many blocks, whose operands are rounded once in shared memory.
#include "rounded.cuh"

// The tiles' arguments: rows, columns, stages, resident blocks per multiprocessor.
MATMUL_ROUNDED(matmul_rounded_128x128_bf16, RoundedTile<128, 128, 3, 1>)
MATMUL_ROUNDED(matmul_rounded_128x64_bf16, RoundedTile<128, 64, 3, 2>)
MATMUL_ROUNDED(matmul_rounded_64x128_bf16, RoundedTile<64, 128, 3, 2>)
MATMUL_ROUNDED(matmul_rounded_64x64_bf16, RoundedTile<64, 64, 4, 2>)

MATMUL_ROUNDED_IMAGES(matmul_rounded_images_128x128_bf16, RoundedTile<128, 128, 4, 1>)
MATMUL_ROUNDED_IMAGES(matmul_rounded_images_128x64_bf16, RoundedTile<128, 64, 4, 2>)
MATMUL_ROUNDED_IMAGES(matmul_rounded_images_64x128_bf16, RoundedTile<64, 128, 4, 2>)
