package testenv

import (
	"os"
	"testing"
)

// Variable is the environment variable that asks for all tests.
const Variable = "POLLEN_TEST_ALL"

// All reports whether every test is to run in full: with POLLEN_TEST_ALL=1, and on a real GPU,
// which is fast.
func All() bool { return os.Getenv(Variable) == "1" || os.Getenv("POLLEN_TEST_DEVICE") == "cuda" }

// NeedsAll skips t unless All. The reason says what takes long.
func NeedsAll(t testing.TB, reason string) {
	t.Helper()
	if !All() {
		t.Skipf("%s: %s=1 runs it", reason, Variable)
	}
}

// Some returns all values if All, otherwise the first n.
func Some[T any](n int, values []T) []T {
	if All() || len(values) <= n {
		return values
	}
	return values[:n]
}
