package kernel

// copyLinesOf copies lines of width elements, which are toLine and fromLine elements apart.
func copyLinesOf[T Float](to []T, toLine int, from []T, fromLine, lines, width int) {
	if copyLinesFast(to, toLine, from, fromLine, lines, width) {
		return
	}
	for i := range lines {
		copy(to[i*toLine:][:width], from[i*fromLine:][:width])
	}
}

// zipLinesOf interleaves even and odd elements into lines of the given width.
func zipLinesOf[T Float](to []T, toLine int, even, odd []T, fromLine, lines, width int) {
	fast := zipLinesFast(to, toLine, even, odd, fromLine, lines, width/2)
	for i := range lines {
		line, first, second := to[i*toLine:][:width], even[i*fromLine:], odd[i*fromLine:]
		if !fast {
			for j := range width / 2 {
				line[2*j], line[2*j+1] = first[j], second[j]
			}
		}
		if width%2 == 1 {
			line[width-1] = first[width/2]
		}
	}
}

// unzipLinesOf is the inverse of zipLinesOf: it separates the even and odd elements of lines of the
// given width.
func unzipLinesOf[T Float](even, odd []T, toLine int, from []T, fromLine, lines, width int) {
	fast := unzipLinesFast(even, odd, toLine, from, fromLine, lines, width/2)
	if fast && width%2 == 0 {
		return
	}
	for i := range lines {
		line, first, second := from[i*fromLine:][:width], even[i*toLine:], odd[i*toLine:]
		if !fast {
			for j := range width / 2 {
				first[j], second[j] = line[2*j], line[2*j+1]
			}
		}
		if width%2 == 1 {
			first[width/2] = line[width-1]
		}
	}
}
