package kernel

// packRows packs panels from a source with contiguous rows: element (k, j) of panel n, which starts
// at n*size, is source[k*stride + n*16 + j]. The last panel is padded with zeros.
func packRows[T Float](panels []T, size int, source []T, stride, depth, columns int) {
	whole := columns / panelColumns
	copied := 0 // panels
	if copyRowsFast(panels, size, source, stride, depth, whole) {
		copied = whole
	}
	if copied*panelColumns == columns {
		return
	}
	for k := range depth {
		from := source[k*stride:][copied*panelColumns : columns]
		at := k*panelColumns + copied*size
		for range whole - copied {
			row := *(*[panelColumns]T)(from)
			*(*[panelColumns]T)(panels[at:]) = row
			from = from[panelColumns:]
			at += size
		}
		if len(from) > 0 {
			row := panels[at:][:panelColumns]
			clear(row[copy(row, from):])
		}
	}
}

// packColumns packs a panel from a source with contiguous columns: panel[k*16+j] =
// source[j*stride+k]. Missing columns repeat the last one; their products are never stored.
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

// packWindow packs a panel of image patches, one column per output pixel: panel[k*16+j] =
// padded[pixels[j]+taps[k]].
func packWindow[T Float](panel, padded []T, p *pixelPanel, taps []int32) {
	runs := &p.runs
	if !p.simple {
		runs = nil
	}
	if packWindowFast(panel, padded, &p.pixels, runs, taps) {
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
