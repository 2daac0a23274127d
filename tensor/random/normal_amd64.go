//go:build amd64 && !purego

package random

import "golang.org/x/sys/cpu"

// quadsAGroup is what one iteration of the assembly makes. It writes whole groups, and a block is a whole number of them.
const quadsAGroup = 8

// hasAVX2 is a variable for the tests, which compare both ways.
var hasAVX2 = cpu.X86.HasAVX2

// normalQuads fills the first 4*quads elements of dst; what lies behind them is not defined.
func normalQuads(dst *[BlockSize]float32, quads int, quad uint32, a Address) {
	if !hasAVX2 {
		normalQuadsPortable(dst[:4*quads], quad, a)
		return
	}
	groups := (quads + quadsAGroup - 1) / quadsAGroup
	k, c := a.Key(), a.Counter(quad)
	if groups > 0 {
		normalGroupsAVX2(&dst[0], groups, k[0], k[1], c[0], c[1], c[2], c[3])
	}
}
