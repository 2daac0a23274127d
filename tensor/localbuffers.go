package tensor

import "slices"

// life is the launches between which a buffer is used, and whether the first writes it.
type lifetime struct {
	first, last int
	written     bool
}

// placeLocals gives a place in the workers' memory to what is written and used in the strips of one
// stage alone.
func placeLocalBuffers(launches []Launch, stages []fusedStage) {
	lifetimes := map[*Buffer]lifetime{}
	for i := range launches {
		for _, a := range launches[i].Arguments {
			if l, known := lifetimes[a.Buffer]; known {
				l.last = i
				lifetimes[a.Buffer] = l
			} else if a.Buffer != nil {
				lifetimes[a.Buffer] = lifetime{i, i, a.Access == Write}
			}
		}
	}
	for g := range stages {
		if stages[g].tiles != nil {
			stages[g].placeLocals(launches, lifetimes)
		}
	}
}

// placeLocals does so for the stage, of whose launches it gives each argument a place or -1.
func (s *fusedStage) placeLocals(launches []Launch, lifetimes map[*Buffer]lifetime) {
	row := map[*Buffer]int{} // bytes of a strip's rows, of what can be passed on; 0 if it cannot
	largest := 0
	for n, end := range s.tiles[1:] {
		largest = max(largest, end-s.tiles[n])
	}
	var buffers []*Buffer
	for i := s.from; i < s.to; i++ {
		for j, a := range launches[i].Arguments {
			b := a.Buffer
			if b == nil || b.Arena != Scratch {
				continue
			}
			if _, seen := row[b]; !seen {
				buffers = append(buffers, b)
				row[b] = b.Bytes() / launches[i].Host.RowTile.Rows * s.ratios[i-s.from] * largest
			}
			if l := lifetimes[b]; l.first < s.from || l.last >= s.to || !l.written || !launches[i].owns(j) || j == 0 && launches[i].Host.hasEpilogue() {
				row[b] = 0
			}
		}
	}
	buffers = slices.DeleteFunc(buffers, func(b *Buffer) bool { return row[b] == 0 })
	slices.SortStableFunc(buffers, func(a, b *Buffer) int { return row[b] - row[a] })
	places := map[*Buffer]*Buffer{}
	var strips []*Buffer
	for _, b := range buffers {
		places[b] = NewBuffer(b.Name, Scratch, Uint8, row[b])
		strips = append(strips, places[b])
	}
	s.localBytes = Place(strips, func(i, j int) bool {
		one, other := lifetimes[buffers[i]], lifetimes[buffers[j]]
		return one.last < other.first || other.last < one.first
	})
	for i := s.from; i < s.to; i++ {
		at := make([]int, len(launches[i].Arguments))
		for j, a := range launches[i].Arguments {
			at[j] = -1
			if place := places[a.Buffer]; place != nil {
				at[j] = place.Offset
			}
		}
		s.localOffsets = append(s.localOffsets, at)
	}
}
