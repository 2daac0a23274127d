//go:build !purego

package random

import "testing"

func TestAssemblyMatchesPortable(t *testing.T) {
	t.Run("NEON", func(t *testing.T) {
		if !hasAssembly {
			t.Skip("this environment has no NEON")
		}
		compareWithPortable(t)
	})
}
