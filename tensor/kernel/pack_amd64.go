//go:build !purego

package kernel

// copyLinesFast is copyLinesOf in assembly.
func copyLinesFast[T Float](to []T, toLine int, from []T, fromLine, lines, width int) bool {
	if !useAssembly[T]() || width < 1 || lines < 1 {
		return false
	}
	target, source := addressOf(to, (lines-1)*toLine+width), addressOf(from, (lines-1)*fromLine+width)
	if width < vector {
		copyNarrow(target, toLine, source, fromLine, lines, &narrowMasks[width])
	} else {
		copyLines(target, toLine, source, fromLine, lines, width)
	}
	return true
}

// narrowMasks has, for each number of lanes, a mask whose first lanes are negative.
var narrowMasks = func() (masks [vector][vector]int32) {
	for width := range masks {
		for lane := range width {
			masks[width][lane] = -1
		}
	}
	return masks
}()

// unzipLinesFast separates the even and odd elements of lines of at least eight pairs.
func unzipLinesFast[T Float](even, odd []T, toLine int, from []T, fromLine, lines, pairs int) bool {
	if !useAssembly[T]() || pairs < vector || lines < 1 {
		return false
	}
	reach := (lines-1)*toLine + pairs
	unzipLines(addressOf(even, reach), addressOf(odd, reach), toLine, addressOf(from, (lines-1)*fromLine+2*pairs), fromLine, lines, pairs)
	return true
}

// zipLinesFast interleaves even and odd elements into lines, for at least eight pairs per line.
func zipLinesFast[T Float](to []T, toLine int, even, odd []T, fromLine, lines, pairs int) bool {
	if !useAssembly[T]() || pairs < vector || lines < 1 {
		return false
	}
	reach := (lines-1)*fromLine + pairs
	zipLines(addressOf(to, (lines-1)*toLine+2*pairs), toLine, addressOf(even, reach), addressOf(odd, reach), fromLine, lines, pairs)
	return true
}

// copyRowsFast packs whole panels of rows.
func copyRowsFast[T Float](panels []T, size int, source []T, stride, depth, whole int) bool {
	if !useAssembly[T]() || depth == 0 || whole == 0 {
		return false
	}
	to, from := addressOf(panels, (whole-1)*size+depth*panelColumns), addressOf(source, (depth-1)*stride+whole*panelColumns)
	if isa == avx512 {
		copyRowsAVX512(to, size, from, stride, depth, whole)
	} else {
		copyRowsAVX2(to, size, from, stride, depth, whole)
	}
	return true
}
