// Convolutions of one tap with cp.async.
#include "producttiles.cuh"
#include "pixels.cuh"

PRODUCT_TILES(CONV1X1)
