package kernel

// packRows packs a panel whose rows are contiguous in the source:
// panel[k*16+j] = source[k*stride+j]. Columns from the given number on are
// zero.
func packRows[T Float](panel, source []T, stride, depth, columns int) {
	if columns == panelColumns {
		for k := range depth {
			*(*[panelColumns]T)(panel[k*panelColumns:]) = *(*[panelColumns]T)(source[k*stride:])
		}
		return
	}
	for k := range depth {
		row := panel[k*panelColumns:][:panelColumns]
		n := copy(row, source[k*stride:][:columns])
		clear(row[n:])
	}
}

// packColumns packs a panel whose columns are contiguous in the source:
// panel[k*16+j] = source[j*stride+k]. Columns from the given number on repeat
// the last one; their products are never stored.
func packColumns[T Float](panel, source []T, stride, depth, columns int) {
	if packColumnsFast(panel, source, stride, depth, columns) {
		return
	}
	for j := range panelColumns {
		column := source[min(j, columns-1)*stride:][:depth]
		for k, v := range column {
			panel[k*panelColumns+j] = v
		}
	}
}

// packWindow packs a panel of image patches:
// panel[k*16+j] = padded[pixels[j]+taps[k]].
func packWindow[T Float](panel, padded []T, p *pixelPanel, taps []int32) {
	if packWindowFast(panel, padded, p, taps) {
		return
	}
	for k, tap := range taps {
		row := (*[panelColumns]T)(panel[k*panelColumns:])
		from := padded[tap:]
		for j, pixel := range p.pixels {
			row[j] = from[pixel]
		}
	}
}
