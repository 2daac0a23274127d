package kernel

// InstructionSet is what the float32 kernels use on this machine: "AVX2", with fused multiply-adds, or "portable Go".
func InstructionSet() string {
	if useAVX2 {
		return "AVX2"
	}
	return "portable Go"
}
