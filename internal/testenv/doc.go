// Package testenv determines how thorough tests are.
//
// "go test ./..." takes about three minutes on two cores: every package is tested, and the
// emulated GPU computes each op at one shape. POLLEN_TEST_ALL=1 runs the rest as well: all shapes,
// mutants of kernels, kills at random moments, and statistics that need many samples. CI sets it.
package testenv
