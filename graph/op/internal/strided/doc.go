// Package strided computes the offsets of elements of a tensor that is read in another order than
// that of its memory. A Layout has the extents and strides of some axes; the CUDA kernels have the
// same type, in layout.cuh.
package strided
