// Package sumexp sums exponentials of a row of numbers, such as logits, without overflow, in
// float64.
package sumexp
