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

// isa is the instruction set in use; microRows and tableRows are the heights of its register tiles.
// Only tests change them.
var (
	isa                  = available()
	microRows, tableRows = isa.rows()
)

// rows returns the rows of a full register tile: in general, and with a left factor given by
// tables, whose addresses also need registers.
func (i instructionSet) rows() (panel, table int) {
	if i == avx512 {
		return maxRows, 10
	}
	return minRows, minRows
}

// InstructionSet returns the instruction set of the float32 kernels: "AVX-512", "AVX2" (with FMA),
// "NEON" or "portable Go". GODEBUG=cpu.avx512f=off, cpu.avx2=off or cpu.asimd=off selects a smaller
// one, for comparisons.
func InstructionSet() string { return isa.String() }
