package datasets

// thumbnailSide is the largest side of a thumbnail.
const thumbnailSide = 32

// differenceHash returns the 64-bit difference hash of an image [C H W]: its luminance, averaged
// over 9x8 cells, and a bit for each pair of neighbours in a row that is 1 if the right one is
// lighter (N. Krawetz, "Kind of like that", 2013). A difference of a few levels does not count, so
// that the noise of a flat background does not either.
func differenceHash(image []byte, channels, height, width int) (hash uint64) {
	const columns, rows, level = 9, 8, 2
	plane := height * width
	for row := range rows {
		top, bottom := row*height/rows, max((row+1)*height/rows, row*height/rows+1)
		var left int
		for column := range columns {
			from, to := column*width/columns, max((column+1)*width/columns, column*width/columns+1)
			sum, area := 0, (bottom-top)*(to-from)
			for y := top; y < bottom; y++ {
				if channels < 3 {
					for _, v := range image[y*width+from : y*width+to] {
						sum += int(v) << 16
					}
					continue
				}
				r := image[y*width+from : y*width+to]
				g, b := image[plane+y*width+from:][:len(r)], image[2*plane+y*width+from:][:len(r)]
				for i := range r {
					sum += 19595*int(r[i]) + 38470*int(g[i]) + 7471*int(b[i])
				}
			}
			mean := sum / area
			if column > 0 {
				hash <<= 1
				if mean > left+level<<16 {
					hash |= 1
				}
			}
			left = mean
		}
	}
	return hash
}

// thumbnail appends an image [C H W], averaged over cells where a side is longer than
// thumbnailSide, to a slice.
func thumbnail(to []byte, image []byte, channels, height, width int) []byte {
	rows, columns := min(height, thumbnailSide), min(width, thumbnailSide)
	if rows == height && columns == width {
		return append(to, image...)
	}
	sums := make([]uint32, width) // of the rows of a cell, by column
	for c := range channels {
		plane := image[c*height*width:][:height*width]
		for row := range rows {
			top, bottom := row*height/rows, (row+1)*height/rows
			clear(sums)
			for y := top; y < bottom; y++ {
				for x, v := range plane[y*width:][:len(sums)] {
					sums[x] += uint32(v)
				}
			}
			from := 0
			for column := range columns {
				end, sum := (column+1)*width/columns, uint32(0)
				for _, v := range sums[from:end] {
					sum += v
				}
				to = append(to, byte(sum/uint32((bottom-top)*(end-from))))
				from = end
			}
		}
	}
	return to
}
