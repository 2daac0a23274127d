//go:build !purego

package kernel

import "golang.org/x/sys/cpu"

// available returns the largest instruction set that the processor has, the operating system
// supports (it must save the registers) and GODEBUG allows.
func available() instructionSet {
	switch x := cpu.X86; {
	case !x.HasAVX2 || !x.HasFMA:
		return portableGo
	case !x.HasAVX512 || !x.HasAVX512F || !x.HasAVX512BW || !x.HasAVX512DQ || !x.HasAVX512VL:
		return avx2
	}
	return avx512
}
