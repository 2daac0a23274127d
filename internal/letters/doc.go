// Package letters writes small data that look like notMNIST's, for tests and for trying programs.
package letters
