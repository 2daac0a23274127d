// Package array holds ops that put tensors' elements into another order, take some of them, or treat
// many small matrices: what graphs of other frameworks need besides package op. Package stock's
// adopted graphs use them. The policies and letters are package op's.
package array
