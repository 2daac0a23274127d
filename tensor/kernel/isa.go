package kernel

// isa is the instruction set in use. Only tests change it.
var isa = available()

// InstructionSet returns the instruction set of the float32 kernels: "AVX-512", "AVX2" (with FMA),
// "NEON" or "portable Go". GODEBUG=cpu.avx512f=off, cpu.avx2=off or cpu.asimd=off selects a smaller
// one, for comparisons.
func InstructionSet() string { return isa.String() }
