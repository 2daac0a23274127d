//go:build !purego

package kernel

import "golang.org/x/sys/cpu"

// available returns NEON unless GODEBUG disables it.
func available() instructionSet {
	if !cpu.ARM64.HasASIMD {
		return portableGo
	}
	return neon
}
