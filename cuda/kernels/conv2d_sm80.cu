// Convolutions with cp.async.
#include "conv2d.cuh"
#include "producttiles.cuh"

PRODUCT_TILES(CONV2D)
