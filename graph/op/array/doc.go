// Package array provides ops on arrays: transposition, slices, repetition, cumulative sums, row
// maxima, products of many small matrices. Graphs of other frameworks (package stock) and models of
// time series need them; networks do not. Conventions are as in package op.
package array
