package testenv

import (
	"os"
	"testing"
)

// variable is the environment variable that asks for all tests.
const variable = "POLLEN_TEST_ALL"

// All reports whether every test is to run in full: with POLLEN_TEST_ALL=1, and on a real GPU,
// which is fast. Otherwise it logs that the test has more to run: CI repeats only the tests that
// log the variable.
func All(t testing.TB) bool {
	t.Helper()
	all := os.Getenv(variable) == "1" || os.Getenv("POLLEN_TEST_DEVICE") == "cuda"
	if !all {
		t.Logf("%s=1 runs more", variable)
	}
	return all
}

// NeedsAll skips t unless All. The reason says what takes long.
func NeedsAll(t testing.TB, reason string) {
	t.Helper()
	if !All(t) {
		t.Skipf("%s: %s=1 runs it", reason, variable)
	}
}

// Some returns all values if All, otherwise the first n.
func Some[T any](t testing.TB, n int, values []T) []T {
	t.Helper()
	if len(values) <= n || All(t) {
		return values
	}
	return values[:n]
}
