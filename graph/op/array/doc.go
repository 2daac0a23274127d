// Package array holds ops that put tensors' elements into another order, take some of them, or
// treat many rows or small matrices alike: what graphs of other frameworks need besides package op.
// Package stock uses them. The policies and letters are package op's.
package array
