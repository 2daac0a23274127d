//go:build (!amd64 && !arm64) || purego

package random

// normalGroup is the number of values that fillNormals and fillUniforms make at a time; it divides
// BlockSize.
const normalGroup = 4

// fillNormals fills dst with the normals of quads quad, quad+1, ... of the address; len(dst) is a
// multiple of normalGroup.
func fillNormals(dst []float32, quad uint32, a Address) {
	normalsPortable(dst, quad, a)
}

// fillUniforms fills dst with the uniforms of quads quad, quad+1, ... of the address; len(dst) is a
// multiple of normalGroup.
func fillUniforms(dst []float32, quad uint32, a Address) {
	uniformsPortable(dst, quad, a)
}
