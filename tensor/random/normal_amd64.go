//go:build !purego

package random

import "golang.org/x/sys/cpu"

//go:generate go run -C generate main.go -out ../normal_avx2_amd64.s -stubs ../normal_avx2_amd64.go -pkg random
//go:generate go run -C generate main.go -avx512 -out ../normal_avx512_amd64.s -stubs ../normal_avx512_amd64.go -pkg random

// hasAssembly (AVX2) and hasAVX512 are variables so that tests can run every implementation.
var (
	hasAssembly = cpu.X86.HasAVX2
	hasAVX512   = hasAssembly && cpu.X86.HasAVX512 && cpu.X86.HasAVX512F && cpu.X86.HasAVX512DQ
)

func normalGroups(dst *float32, groups int, k0, k1, c0, c1, c2, c3 uint32) {
	if hasAVX512 {
		normalGroupsAVX512(dst, groups, k0, k1, c0, c1, c2, c3)
	} else {
		normalGroupsAVX2(dst, groups, k0, k1, c0, c1, c2, c3)
	}
}

func uniformGroups(dst *float32, groups int, k0, k1, c0, c1, c2, c3 uint32) {
	if hasAVX512 {
		uniformGroupsAVX512(dst, groups, k0, k1, c0, c1, c2, c3)
	} else {
		uniformGroupsAVX2(dst, groups, k0, k1, c0, c1, c2, c3)
	}
}
