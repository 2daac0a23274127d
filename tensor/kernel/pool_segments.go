package kernel

// poolSegment is the number of outputs of 2 x 2 windows that half a vector holds.
const poolSegment = 4

// pairSegments returns the table of a plane for the assembly, or nil if a line has fewer outputs
// than a segment. width is the plane's, and [outH outW] are the outputs of its 2 x 2 windows. Each
// line of outputs is divided into segments of poolSegment outputs; the last may overlap the one
// before. Segments are processed in pairs; the table holds, for each pair, two offsets in x and two
// in y.
func pairSegments(width, outH, outW int) (table []int32) {
	if outW < poolSegment {
		return nil
	}
	var segments [][2]int32
	for line := range outH {
		for q := 0; q < outW; q += poolSegment {
			at := min(q, outW-poolSegment)
			segments = append(segments, [2]int32{int32(2*line*width + 2*at), int32(line*outW + at)})
		}
	}
	if len(segments)%2 == 1 { // the assembly takes pairs: compute the last segment twice
		segments = append(segments, segments[len(segments)-1])
	}
	for i := 0; i < len(segments); i += 2 {
		a, b := segments[i], segments[i+1]
		table = append(table, a[0], b[0], a[1], b[1])
	}
	return table
}

// Windows2x2 describes max pooling by 2 x 2 windows that cover planes without overlap, for callers
// that keep the index of each maximum instead of x. The index is the position of the first maximum
// in reading order, 0 to 3 (with NaN, of any element), plus 4 if the maximum is not above 0. It
// takes one byte per window instead of sixteen for x.
type Windows2x2 struct {
	height, width int
	table         []int32
}

// NewWindows2x2 returns the windows of planes with an even height and width.
func NewWindows2x2(height, width int) *Windows2x2 {
	return &Windows2x2{height, width, pairSegments(width, height/2, width/2)}
}
