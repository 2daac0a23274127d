// Package array holds ops that put tensors' elements into another order, take some of them, add
// them up along an axis, or treat many rows or small matrices alike: what graphs of other
// frameworks and models of series need besides package op. The policies and letters are package
// op's.
package array
