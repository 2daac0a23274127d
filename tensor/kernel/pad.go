package kernel

// pad copies channels [c0, c1) of some images into the padded copy, with zeros around and between
// elements. It copies only the rows that output rows from row on need.
func pad[T Float](w *window, padded, source []T, image, images, c0, c1, row int) {
	plane := w.paddedH * w.paddedW
	top := row*w.strideH - w.padH // first row of the padded copy, in source rows times spacing
	first := ceilDiv(max(top, 0), w.spacingH)
	last := min(w.height, ceilDiv(max(top+w.paddedH, 0), w.spacingH))
	for n := range images {
		for c := c0; c < c1; c++ {
			from := source[((image+n)*w.channels+c)*w.height*w.width:][:w.height*w.width]
			to := padded[(n*w.channels+c)*plane:][:plane]
			clear(to)
			if w.split {
				if lines, width := last-first, min(w.width, w.paddedW-w.padW); lines > 0 && width > 0 {
					to := to[(first-top)*w.paddedW:]
					unzipLinesOf(to[w.column(w.padW):], to[w.column(w.padW+1):], w.paddedW, from[first*w.width:], w.width, lines, width)
				}
				continue
			}
			if w.spacingH == 1 && w.spacingW == 1 && w.padW >= 0 && w.padW < w.paddedW && first < last {
				width := min(w.width, w.paddedW-w.padW)
				if copyLinesFast(to[(first-top)*w.paddedW+w.padW:], w.paddedW, from[first*w.width:], w.width, last-first, width) {
					continue
				}
			}
			for h := first; h < last; h++ {
				padLine(to[(h*w.spacingH-top)*w.paddedW:][:w.paddedW], from[h*w.width:][:w.width], w.padW, w.spacingW)
			}
		}
	}
}

// padLine places the elements of a row at start, start+spacing, ... of line and drops those
// outside.
func padLine[T Float](line, row []T, start, spacing int) {
	if spacing == 1 {
		if start < 0 {
			row = row[min(-start, len(row)):]
			start = 0
		}
		copy(line[min(start, len(line)):], row)
		return
	}
	for i, v := range row {
		if at := start + i*spacing; at >= 0 && at < len(line) {
			line[at] = v
		}
	}
}
