// Package nearest finds the name that a mistyped one stands for, for errors about unknown names.
package nearest
