// Package runtest holds the tests of whole runs: training, interruption, recovery, prediction and
// gathering, by the public API of package bayes. It has no code of its own.
package runtest
