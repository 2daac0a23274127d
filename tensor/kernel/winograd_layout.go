package kernel

// lanes is the number of channels that a transform processes side by side: one register, or two of
// NEON. An image in blocks is [rows columns lanes].
var lanes = isa.lanes()

// minLanes is the number of lanes of all instruction sets except AVX-512, maxLanes the number of
// AVX-512.
const (
	minLanes = 8
	maxLanes = 16
)

func (i instructionSet) lanes() int {
	if i == avx512 {
		return maxLanes
	}
	return minLanes
}

// patchLayout holds the strides of patches, in elements: from row to row, column to column and
// patch to patch. Each position holds lanes elements.
type patchLayout struct{ row, column, patch int }

// reach returns the number of elements that count patches of the given size span.
func (l patchLayout) reach(rows, columns, count int) int {
	return (rows-1)*l.row + (columns-1)*l.column + (count-1)*l.patch + lanes
}

// planes describes the layout of some planes, the channels of an image: the strides of planes and
// rows in elements, and their sizes.
type planes struct{ plane, row, count, rows, width int }

// transformTemporary is the number of elements that transform keeps between its two passes.
const transformTemporary = (3 + maxPoints*maxPoints) * maxLanes
