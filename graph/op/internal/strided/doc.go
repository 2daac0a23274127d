// Package strided finds the elements of tensors that are read in another order than their own. Its one
// noun is a Walk, the extents and strides of some axes; kernels have the same type, in walk.cuh.
package strided
