//go:build !purego

package kernel

// transformsAVX2 and transformsAVX512 are in the order of linearMap's numbers: six maps for each
// algorithm, which is named by patch and taps.
var transformsAVX2 = transforms{
	winogradInput43AVX2, winogradOutput43AVX2, winogradFilter43AVX2, winogradSpread43AVX2, winogradOverlap43AVX2, winogradGather43AVX2,
	winogradInput45AVX2, winogradOutput45AVX2, winogradFilter45AVX2, winogradSpread45AVX2, winogradOverlap45AVX2, winogradGather45AVX2,
	winogradInput75AVX2, winogradOutput75AVX2, winogradFilter75AVX2, winogradSpread75AVX2, winogradOverlap75AVX2, winogradGather75AVX2,
}

var transformsAVX512 = transforms{
	winogradInput43AVX512, winogradOutput43AVX512, winogradFilter43AVX512, winogradSpread43AVX512, winogradOverlap43AVX512, winogradGather43AVX512,
	winogradInput45AVX512, winogradOutput45AVX512, winogradFilter45AVX512, winogradSpread45AVX512, winogradOverlap45AVX512, winogradGather45AVX512,
	winogradInput75AVX512, winogradOutput75AVX512, winogradFilter75AVX512, winogradSpread75AVX512, winogradOverlap75AVX512, winogradGather75AVX512,
}

func transformsInUse() *transforms {
	if isa == avx512 {
		return &transformsAVX512
	}
	return &transformsAVX2
}

func interleaveBlocks(blocks, plane *float32, offsets *[vector]int, blocksRow, planeRow, rows, width int) {
	if isa == avx512 {
		interleaveAVX512(blocks, plane, offsets, blocksRow, planeRow, rows, width)
	} else {
		interleaveAVX2(blocks, plane, offsets, blocksRow, planeRow, rows, width)
	}
}

func separateBlocks(blocks, plane *float32, offsets *[vector]int, blocksRow, planeRow, rows, width int) {
	if isa == avx512 {
		separateAVX512(blocks, plane, offsets, blocksRow, planeRow, rows, width)
	} else {
		separateAVX2(blocks, plane, offsets, blocksRow, planeRow, rows, width)
	}
}
