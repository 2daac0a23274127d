//go:build (amd64 || arm64) && !purego

package random

const (
	// normalGroup is the number of values that the assembly makes at a time; it divides BlockSize.
	normalGroup = 32
	// longestCall bounds the values of one call to the assembly to some microseconds of work,
	// because assembly cannot be preempted.
	longestCall = 4096
)

// fillNormals fills dst with the normals of quads quad, quad+1, ... of the address; len(dst) is a
// multiple of normalGroup.
func fillNormals(dst []float32, quad uint32, a Address) {
	if !hasAssembly {
		normalsPortable(dst, quad, a)
		return
	}
	k, c := a.Key(), a.Counter(quad)
	for len(dst) > 0 {
		n := min(len(dst), longestCall)
		normalGroups(&dst[0], n/normalGroup, k[0], k[1], c[0], c[1], c[2], c[3])
		dst, c[0] = dst[n:], c[0]+uint32(n/4)
	}
}

// fillUniforms fills dst with the uniforms of quads quad, quad+1, ... of the address; len(dst) is a
// multiple of normalGroup.
func fillUniforms(dst []float32, quad uint32, a Address) {
	if !hasAssembly {
		uniformsPortable(dst, quad, a)
		return
	}
	k, c := a.Key(), a.Counter(quad)
	for len(dst) > 0 {
		n := min(len(dst), longestCall)
		uniformGroups(&dst[0], n/normalGroup, k[0], k[1], c[0], c[1], c[2], c[3])
		dst, c[0] = dst[n:], c[0]+uint32(n/4)
	}
}
