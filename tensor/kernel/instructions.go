package kernel

// InstructionSet is what the float32 kernels use on this machine: "AVX2", with fused multiply-adds, or "portable Go". The environment can
// lower it, to compare: GODEBUG=cpu.avx2=off, which the assembly of package random obeys too.
func InstructionSet() string {
	if useAVX2 {
		return "AVX2"
	}
	return "portable Go"
}
