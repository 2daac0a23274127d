package tensor

import (
	"slices"
	"sort"
)

// Place sets the offsets of buffers in one arena and returns its size in bytes. It is a first-fit
// allocator: each buffer in turn gets the lowest offset at which it overlaps no earlier buffer,
// except those for which share(i, j) allows it because their lifetimes are disjoint. Sort buffers
// by decreasing size for a compact arena.
func Place(buffers []*Buffer, share func(i, j int) bool) (bytes int) {
	var placed []int // by offset
	for i, b := range buffers {
		at, size := 0, Align(b.Bytes())
		for _, j := range placed {
			if share(i, j) {
				continue
			}
			other := buffers[j]
			if at+size <= other.Offset {
				break
			}
			at = max(at, other.Offset+Align(other.Bytes()))
		}
		b.Offset = at
		behind := sort.Search(len(placed), func(k int) bool { return buffers[placed[k]].Offset > at })
		placed = slices.Insert(placed, behind, i)
		bytes = max(bytes, at+size)
	}
	return bytes
}
