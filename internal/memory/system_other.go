//go:build !linux && !darwin && !freebsd && !windows

package memory

// system returns no limit: other systems are not asked.
func system() Limit { return unlimited }
