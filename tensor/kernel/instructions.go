package kernel

// instructionSet is the instruction set of the float32 kernels: NEON on arm64; AVX2 or the faster
// AVX-512 on amd64.
type instructionSet int

const (
	portableGo instructionSet = iota
	neon
	avx2
	avx512
)

func (i instructionSet) String() string {
	return [...]string{"portable Go", "NEON", "AVX2", "AVX-512"}[i]
}

// vector is the smallest number of float32 that the assembly processes: a register of AVX2, two of
// NEON.
const vector = 8
