package tensor

import (
	"slices"
	"sort"
)

// Place sets the offsets of buffers in one arena and returns the bytes they take. Each in turn gets
// the lowest place where it overlaps no earlier one, except those with which share says it may.
// Given the largest first, they take little.
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
