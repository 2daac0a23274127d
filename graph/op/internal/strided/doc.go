// Package strided computes the offsets of elements of a tensor that is not read in memory order. A
// Layout has the extents and strides of some axes; the CUDA kernels have the same type, in
// layout.cuh.
package strided
