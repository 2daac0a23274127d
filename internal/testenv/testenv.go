package testenv

import (
	"os"
	"strconv"
	"testing"
	"time"
)

// The environment variables that ask for all tests, and limit them to those that begin until a
// time, in seconds since 1970: CI must end on slow machines, too.
const (
	variable = "POLLEN_TEST_ALL"
	until    = "POLLEN_TEST_UNTIL"
)

// All reports whether every test is to run in full: with POLLEN_TEST_ALL=1, until the time of
// POLLEN_TEST_UNTIL if there is one, and on a real GPU, which is fast. Otherwise it logs that the
// test has more to run: CI repeats only the tests that log the variable.
func All(t testing.TB) bool {
	t.Helper()
	why := whyNotAll(os.Getenv, time.Now())
	if why != "" {
		t.Log(why)
	}
	return why == ""
}

// NeedsAll skips t unless All. The reason says what takes long.
func NeedsAll(t testing.TB, reason string) {
	t.Helper()
	if why := whyNotAll(os.Getenv, time.Now()); why != "" {
		t.Skipf("%s: %s", reason, why)
	}
}

// whyNotAll returns why not all tests run, or "" if they do.
func whyNotAll(env func(string) string, now time.Time) string {
	if env("POLLEN_TEST_DEVICE") == "cuda" {
		return ""
	}
	if env(variable) != "1" {
		return variable + "=1 runs more"
	}
	if text := env(until); text != "" {
		end, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			panic(until + " must be a number of seconds since 1970, got " + text)
		}
		if now.Unix() > end {
			return until + " is over, which leaves the rest out"
		}
	}
	return ""
}

// Some returns all values if All, otherwise the first n.
func Some[T any](t testing.TB, n int, values []T) []T {
	t.Helper()
	if len(values) <= n || All(t) {
		return values
	}
	return values[:n]
}
