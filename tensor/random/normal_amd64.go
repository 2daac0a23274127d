//go:build amd64 && !purego

package random

import "golang.org/x/sys/cpu"

//go:generate go run -C generate main.go -out ../normal_avx2_amd64.s -stubs ../normal_avx2_amd64.go -pkg random
//go:generate go run -C generate main.go -avx512 -out ../normal_avx512_amd64.s -stubs ../normal_avx512_amd64.go -pkg random

const (
	// normalGroup is how many numbers the assembly makes at a time; it divides BlockSize.
	normalGroup = 32
	// longestCall bounds how many numbers one call to the assembly makes: some microseconds, as it
	// cannot be preempted.
	longestCall = 4096
)

// hasAVX2 and hasAVX512 are variables for the tests, which run every way.
var (
	hasAVX2   = cpu.X86.HasAVX2
	hasAVX512 = hasAVX2 && cpu.X86.HasAVX512 && cpu.X86.HasAVX512F && cpu.X86.HasAVX512DQ
)

// fillNormals fills dst with the normals of quads quad, quad+1, ... of the address; len(dst) is a
// multiple of normalGroup.
func fillNormals(dst []float32, quad uint32, a Address) {
	if !hasAVX2 {
		normalsPortable(dst, quad, a)
		return
	}
	k, c := a.Key(), a.Counter(quad)
	for len(dst) > 0 {
		n := min(len(dst), longestCall)
		if hasAVX512 {
			normalGroupsAVX512(&dst[0], n/normalGroup, k[0], k[1], c[0], c[1], c[2], c[3])
		} else {
			normalGroupsAVX2(&dst[0], n/normalGroup, k[0], k[1], c[0], c[1], c[2], c[3])
		}
		dst, c[0] = dst[n:], c[0]+uint32(n/4)
	}
}

// fillUniforms fills dst with the uniforms of quads quad, quad+1, ... of the address; len(dst) is a
// multiple of normalGroup.
func fillUniforms(dst []float32, quad uint32, a Address) {
	if !hasAVX2 {
		uniformsPortable(dst, quad, a)
		return
	}
	k, c := a.Key(), a.Counter(quad)
	for len(dst) > 0 {
		n := min(len(dst), longestCall)
		if hasAVX512 {
			uniformGroupsAVX512(&dst[0], n/normalGroup, k[0], k[1], c[0], c[1], c[2], c[3])
		} else {
			uniformGroupsAVX2(&dst[0], n/normalGroup, k[0], k[1], c[0], c[1], c[2], c[3])
		}
		dst, c[0] = dst[n:], c[0]+uint32(n/4)
	}
}
