// Command generate writes the AVX2 assembly of package random. It is a module of its own, so that users of Pollen do not
// depend on the assembler. From this folder:
//
//	go run . -out ../normal_avx2_amd64.s -stubs ../normal_avx2_amd64.go -pkg random
//
// The operations and their order are those of philox and boxMuller in package random, on eight lanes at a time; a test there compares the bits.
package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

const (
	rounds = 10
	// A set is the Philox state of four quads: four registers, each with one word of each quad in the lower halves of its
	// 64-bit lanes, where VPMULUDQ reads it. The upper halves hold rubbish. Two sets are in flight at once.
	sets       = 2
	quadsASet  = 4
	bytesASet  = quadsASet * 4 * 4
	bytesAGrou = sets * bytesASet
)

func main() {
	Package("github.com/pollen-ml/pollen/tensor/random")
	ConstraintExpr("!purego")
	normalGroups()
	Generate()
}

// normalGroups emits the function: key schedule, then one iteration of the loop for each group of eight quads.
func normalGroups() {
	TEXT("normalGroupsAVX2", NOSPLIT|NOFRAMENeeded(), "func(dst *float32, groups int, k0, k1, c0, c1, c2, c3 uint32)")
}
