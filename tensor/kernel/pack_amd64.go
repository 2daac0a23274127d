//go:build !purego

package kernel

// copyLinesFast copies lines of at least eight elements.
func copyLinesFast[T Float](to []T, toLine int, from []T, fromLine, lines, width int) bool {
	if !useAssembly[T]() || width < vector || lines < 1 {
		return false
	}
	copyLines(addressOf(to, (lines-1)*toLine+width), toLine, addressOf(from, (lines-1)*fromLine+width), fromLine, lines, width)
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
