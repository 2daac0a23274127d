//go:build (amd64 || arm64) && !purego

package kernel

// packColumnsFast transposes eight columns at a time. A depth that is not a multiple of eight is
// completed by a vector that overlaps the one before it.
func packColumnsFast[T Float](panel, source []T, stride, depth, columns int) bool {
	if !useAssembly[T]() || depth < vector {
		return false
	}
	from := addressOf(source, (columns-1)*stride+depth)
	to := addressOf(panel, depth*panelColumns)
	whole := depth &^ (vector - 1)
	rest := depth - vector // the last eight; some are packed a second time
	for half := range 2 {
		var offsets [vector]int
		for j := range offsets {
			offsets[j] = min(half*vector+j, columns-1) * stride
		}
		part := offset(to, half*vector)
		transpose(part, panelColumns, from, &offsets, whole)
		if whole < depth {
			transpose(offset(part, rest*panelColumns), panelColumns, offset(from, rest), &offsets, vector)
		}
	}
	return true
}

// packGroupFast packs the depth except for the last few steps, whose vectors would be stored beyond
// the group, and returns the number of steps it packed.
func packGroupFast[T Float](to, from []T, rows, depth int) int {
	if !useAssembly[T]() || depth < 2*vector {
		return 0
	}
	whole := (depth - vector + 1) &^ (vector - 1)
	var offsets [vector]int
	for j := range offsets {
		offsets[j] = min(j, rows-1) * depth
	}
	transpose(addressOf(to, (whole-1)*minRows+vector), minRows, addressOf(from, rows*depth), &offsets, whole)
	return whole
}

// packWindowFast copies runs of contiguous pixels. If runs is nil, because a half has more than two
// runs, it gathers single pixels.
func packWindowFast[T Float](panel, padded []T, pixels *[panelColumns]int32, runs *[6]int32, taps []int32) bool {
	if !useAssembly[T]() {
		return false
	}
	depth := len(taps)
	to := addressOf(panel, depth*panelColumns)
	from := addressOf(padded, int(pixels[panelColumns-1])+int(taps[depth-1])+1)
	if runs != nil {
		windowRuns(to, from, runs, &taps[0], depth)
	} else {
		windowGather(to, from, pixels, &taps[0], depth)
	}
	return true
}
