//go:build !linux

package emulator

import "testing"

// Driver is the emulated driver. It needs Linux.
type Driver struct {
	Path string // of its library
}

// Open skips the test.
func Open(t testing.TB, _ Options) *Driver {
	t.Helper()
	return &Driver{Path: Build(t)}
}

// Reset does nothing.
func (d *Driver) Reset(Options) {}

// Fail does nothing.
func (d *Driver) Fail(string, int, int) {}

// Lose does nothing.
func (d *Driver) Lose(string, int, int) {}

// Report is empty.
func (d *Driver) Report() string { return "" }

// NotRun returns nothing.
func NotRun() ([]string, error) { return nil, nil }
