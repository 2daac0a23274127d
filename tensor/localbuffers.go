package tensor

import "slices"

// lifetime is the range of launches that use a buffer; written reports whether the first of them
// overwrites it without reading it.
type lifetime struct {
	first, last int
	written     bool
}

// placeLocalBuffers gives a place in the workers' memory to every buffer that is written and used
// only within the tiles of one fused stage. Such a buffer needs room for one tile instead of the
// whole batch. The gradient of a ReLU between two convolutions is a typical one: with 32 KiB per
// image and tiles of 2 images it takes 64 KiB of the worker's memory instead of 3 MiB for a batch
// of 100.
func placeLocalBuffers(launches []Launch, stages []fusedStage, lifetimes map[*Buffer]lifetime) {
	for i := range stages {
		if stages[i].tiles != nil {
			stages[i].placeLocals(launches, lifetimes)
		}
	}
}

// lifetimesOf returns the lifetimes of all buffers.
func lifetimesOf(launches []Launch) map[*Buffer]lifetime {
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
	return lifetimes
}

// placeLocals places the local buffers of one stage. It sets the offset of each argument in the
// worker's memory, or -1 for arguments that stay in their arenas.
func (s *fusedStage) placeLocals(launches []Launch, lifetimes map[*Buffer]lifetime) {
	bytes := map[*Buffer]int{} // bytes per tile; 0 if the buffer must stay in its arena
	largestTile := 0
	for n, end := range s.tiles[1:] {
		largestTile = max(largestTile, end-s.tiles[n])
	}
	var buffers []*Buffer
	for i := s.from; i < s.to; i++ {
		for j, a := range launches[i].Arguments {
			b := a.Buffer
			if b == nil || b.Arena != Scratch {
				continue
			}
			if _, seen := bytes[b]; !seen {
				buffers = append(buffers, b)
				bytes[b] = b.Bytes() / launches[i].Host.RowTile.Rows * s.ratios[i-s.from] * largestTile
				if planes := s.blocks[i-s.from]; planes > 0 && j == 0 {
					bytes[b] = bytes[b] / launches[i].Host.Planes.Count * planes
				}
			}
			if l := lifetimes[b]; l.first < s.from || l.last >= s.to || !l.written || !launches[i].owns(j) || j == 0 && launches[i].Host.hasEpilogue() {
				bytes[b] = 0
			}
		}
	}
	buffers = slices.DeleteFunc(buffers, func(b *Buffer) bool { return bytes[b] == 0 })
	slices.SortStableFunc(buffers, func(a, b *Buffer) int { return bytes[b] - bytes[a] })
	places := map[*Buffer]*Buffer{}
	var local []*Buffer
	for _, b := range buffers {
		places[b] = NewBuffer(b.Name, Scratch, Uint8, bytes[b]) // stands for one tile of b
		local = append(local, places[b])
	}
	s.localBytes = Place(local, func(i, j int) bool {
		one, other := lifetimes[buffers[i]], lifetimes[buffers[j]]
		return s.end(one.last) < other.first || s.end(other.last) < one.first
	})
	for i := s.from; i < s.to; i++ {
		offsets := make([]int, len(launches[i].Arguments))
		for j, a := range launches[i].Arguments {
			offsets[j] = -1
			if place := places[a.Buffer]; place != nil {
				offsets[j] = place.Offset
			}
		}
		s.localOffsets = append(s.localOffsets, offsets)
	}
}

// end returns the last launch that runs before launch i has ended: itself, or the next one if the
// two alternate.
func (s *fusedStage) end(i int) int { return i + min(1, s.blocks[i-s.from]) }
