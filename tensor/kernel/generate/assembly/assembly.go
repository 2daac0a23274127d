// Package assembly describes the AVX2 and AVX-512 functions of package kernel.
package assembly

import (
	. "github.com/mmcloughlin/avo/build"

	"github.com/pollen-ml/pollen/tensor/kernel/generate/rules"
)

// Sizes of package kernel's packed panels, in float32.
const (
	panelColumns = 16
	vector       = 8
	bytes        = 4
)

// AVX2 describes every function in AVX2 and FMA, in the order of the generated file.
func AVX2() {
	ConstraintExpr("!purego")
	all(avx2)
	transpose()
	copyLines()
	zipLines()
	unzipLines()
	copyNarrow()
	maxPlanes()
	notePlaces()
	spreadPlaces()
}

// AVX512 describes the functions that are faster with AVX-512 F, BW, DQ and VL.
func AVX512() {
	ConstraintExpr("!purego")
	all(avx512)
	multiplyPair(avx512)
	multiplyPacked(avx512)
	multiplyTaps(avx512, "multiplyThreeTaps", 9, 3)
	multiplyTaps(avx512, "multiplyFiveTaps", 5, 5)
	accumulateLines(avx512, 2)
	tapPlanes()
	maxLines()
	maxPlanes512()
	notePlaces512()
	spreadPlaces512()
}

func all(t target) {
	multiply(t)
	multiplyPanels(t)
	multiplyTable(t)
	multiplyWindows(t)
	scatter(t)
	accumulateLines(t, 1)
	windowRuns(t)
	windowGather(t)
	copyRows(t)
	passesOf(t, rules.Exponentials())
	passesOf(t, rules.Elementwise())
	sumRows(t)
	scaleBytes(t)
	passesOf(t, rules.Updates())
	passesOf(t, rules.Wide())
	tapSums(t)
	tapProducts(t, map[int]int{vector: 6, panelColumns: 9}[t.lanes])
	peak(t)
	widen(t)
	wideExp(t)
	sumExp(t)
	gram(t)
}
