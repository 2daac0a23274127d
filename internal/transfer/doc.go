// Package transfer makes the images that a distilled network learns from: the given ones, and
// changed copies of them.
package transfer
