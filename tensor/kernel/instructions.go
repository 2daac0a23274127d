package kernel

// instructions are what the float32 kernels can be written in: NEON on arm64, the AVX on amd64, of
// which the later one is faster.
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

// isa is what they use here; microRows and tableRows are its tile heights. Only tests change
// them.
var (
	isa                  = available()
	microRows, tableRows = isa.rows()
)

// rows are the rows of a full tile: in general, and where the left factor is given by tables.
func (i instructionSet) rows() (panel, table int) {
	if i == avx512 {
		return maxRows, 10
	}
	return minRows, minRows
}

// InstructionSet is what float32 kernels use: "AVX-512", "AVX2" (with FMA), "NEON" or "portable
// Go". To compare, GODEBUG=cpu.avx512f=off, cpu.avx2=off or cpu.asimd=off lowers it.
func InstructionSet() string { return isa.String() }
