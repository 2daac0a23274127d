// Package sumexp sums exponentials without overflow, in float64. Its one noun is a row of numbers,
// such as logits.
package sumexp
