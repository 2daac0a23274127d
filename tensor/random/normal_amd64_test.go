//go:build !purego

package random

import "testing"

func TestAssemblyMatchesPortable(t *testing.T) {
	had2, had512 := hasAssembly, hasAVX512
	t.Cleanup(func() { hasAVX512 = had512 })
	for name, has := range map[string]bool{"AVX2": had2, "AVX-512": had512} {
		t.Run(name, func(t *testing.T) {
			if !has {
				t.Skipf("this processor or environment has no %s", name)
			}
			hasAVX512 = name == "AVX-512"
			compareWithPortable(t)
		})
	}
}
