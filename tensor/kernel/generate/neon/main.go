// Command neon writes the NEON functions of package kernel and their Go stubs.
package main

import (
	"slices"

	"github.com/pollen-ml/pollen/tensor/kernel/generate/arm64"
	"github.com/pollen-ml/pollen/tensor/kernel/generate/rules"
)

// Sizes of package kernel's packed panels, in float32.
const (
	panelColumns = 16
	vector       = 8 // half of them
	lanes        = 4 // float32 per register
	bytes        = 4
	maxRows      = 6 // rows of a register tile: with four vectors each, 24 of the 32 registers
)

func main() {
	f := &arm64.File{Package: "kernel"}
	multiplyTiles(f)
	multiplyPanels(f)
	multiplyTable(f)
	multiplyWindows(f)
	scatter(f)
	accumulateLines(f)
	transpose(f)
	windowRuns(f)
	windowGather(f)
	maxPlanes(f)
	notePlaces(f)
	spreadPlaces(f)
	passes(f, slices.Concat(rules.Exponentials(), rules.Elementwise(), rules.Updates(), rules.Wide()))
	sumRows(f)
	scaleBytes(f)
	tapSums(f)
	tapProducts(f)
	unzipLines(f)
	multiplyAdds(f)
	transforms(f)
	interleaveBlocks(f)
	separateBlocks(f)
	f.Main()
}
