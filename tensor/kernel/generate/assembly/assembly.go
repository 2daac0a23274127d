// Package assembly describes the AVX2 and FMA functions of package kernel.
package assembly

import . "github.com/mmcloughlin/avo/build"

// Sizes of package kernel's packed panels, in float32.
const (
	panelRows    = 6
	panelColumns = 16
	vector       = 8
	bytes        = 4
)

// All describes every function, in the order of the generated file.
func All() {
	ConstraintExpr("!purego")
	for rows := 1; rows <= panelRows; rows++ {
		multiply(rows)
	}
	for rows := 1; rows <= panelRows; rows++ {
		multiplyTable(rows)
	}
	for rows := 1; rows <= panelRows; rows++ {
		multiplyWindows(rows)
	}
	for rows := 1; rows <= panelRows; rows++ {
		scatter(rows)
	}
	accumulateLines()
	windowRuns()
	windowGather()
	transpose()
	maxPlanes()
	maxPlanesBackward()
	expm1()
	elementwise(avx2)
	updates(avx2)
	wide(avx2)
	peak(avx2)
}
