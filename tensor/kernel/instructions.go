package kernel

// instructions are what the float32 kernels can be written in, later ones faster.
type instructions int

const (
	portableGo instructions = iota
	avx2
	avx512
)

func (i instructions) String() string { return [...]string{"portable Go", "AVX2", "AVX-512"}[i] }

// inUse is what they use here; panelRows and tableRows are its tile heights. Only tests change
// them.
var (
	inUse                = available()
	panelRows, tableRows = inUse.rows()
)

// rows are the rows of a full tile: in general, and where the left factor is given by tables.
func (i instructions) rows() (panel, table int) {
	if i == avx512 {
		return mostRows, 10
	}
	return leastRows, leastRows
}

// InstructionSet is what the float32 kernels use on this machine: "AVX-512" (F, BW, DQ and VL),
// "AVX2" (with fused multiply-adds) or "portable Go". The environment can lower it to compare:
// GODEBUG=cpu.avx512f=off or cpu.avx2=off, which package random's assembly obeys too.
func InstructionSet() string { return inUse.String() }
