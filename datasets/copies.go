package datasets

import (
	"bytes"
	"fmt"
	"hash/maphash"
	"strings"
)

// place is an image of a data set.
type place struct {
	dataset *Dataset
	split   Split
	index   int
}

// String returns the image's file, or its number in its split.
func (p place) String() string {
	if p.dataset.Files != nil {
		return p.dataset.Files[p.index]
	}
	return fmt.Sprintf("image %d of %s", p.index, p.split)
}

// copies returns groups of images that have the same pixels, each of at least two images in the
// order of the splits.
func copies(splits *Splits) [][]place {
	seed := maphash.MakeSeed() // the result does not depend on the seed
	first, groupOf := map[uint64]place{}, map[uint64]int{}
	var groups [][]place
	for split, d := range splits.all() {
		for i := range d.Len() {
			here, hash := place{d, split, i}, maphash.Bytes(seed, d.Image(i))
			other, known := first[hash]
			switch {
			case !known:
				first[hash] = here
			case !bytes.Equal(other.dataset.Image(other.index), d.Image(i)): // images rarely have the same hash
			default:
				group, known := groupOf[hash]
				if !known {
					group = len(groups)
					groupOf[hash], groups = group, append(groups, []place{other})
				}
				groups[group] = append(groups[group], here)
			}
		}
	}
	return groups
}

// class returns the name of an image's class.
func (p place) class() string { return p.dataset.ClassNames[p.dataset.Labels[p.index]] }

// firstFew lists the first three of a list of names.
func firstFew(names []string) string {
	const few = 3
	if len(names) > few {
		return strings.Join(names[:few], ", ") + ", ..."
	}
	return strings.Join(names, ", ")
}
