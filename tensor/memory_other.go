//go:build !linux

package tensor

// wantLargePages does nothing: other systems give large pages by themselves, or not at all.
func wantLargePages([]byte) {}
