//go:build !linux

package tensor

// wantLargePages does nothing: elsewhere large pages are not for the asking.
func wantLargePages([]byte) {}
