//go:build !linux

package cudatest

import "testing"

func emulated(t testing.TB, _ int) string {
	t.Helper()
	t.Skip("the emulated GPU needs Linux")
	return ""
}
