//go:build !linux

package tensor

// adviseHugePages does nothing: other systems have no such request.
func adviseHugePages([]byte) {}
