// Package letters writes small synthetic data sets in the format of notMNIST, for tests and for
// trying out programs.
package letters
