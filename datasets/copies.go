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

// copies finds the images that have the same pixels: each group has at least two, in the order of
// the splits.
func copies(splits *Splits) [][]place {
	seed := maphash.MakeSeed() // the result does not depend on it
	first, groupOf := map[uint64]place{}, map[uint64]int{}
	var groups [][]place
	for split, d := range [3]*Dataset{Train: splits.Train, Validation: splits.Validation, Test: splits.Test} {
		if d == nil {
			continue
		}
		for i := range d.Len() {
			here, hash := place{d, Split(split), i}, maphash.Bytes(seed, d.Image(i))
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

// remarkCopies counts the images that are in several splits, whose scores are too high, and those
// that have several labels.
func remarkCopies(splits *Splits, options Options) {
	var leaked [3][]string // by Split
	var contradictory []string
	unclear := 0
	for _, group := range copies(splits) {
		from := group[0]
		different := false
		for _, p := range group[1:] {
			if p.split != from.split {
				leaked[p.split] = append(leaked[p.split], fmt.Sprintf("%v and %v", p, from))
			}
			if p.dataset.Labels != nil && from.dataset.Labels != nil && p.dataset.Labels[p.index] != from.dataset.Labels[from.index] {
				if !different {
					contradictory = append(contradictory, fmt.Sprintf("%v (%s) and %v (%s)", from, from.class(), p, p.class()))
				}
				different = true
			}
		}
		if different {
			unclear += len(group)
		}
	}
	for split, d := range [3]*Dataset{Train: splits.Train, Validation: splits.Validation, Test: splits.Test} {
		if n := len(leaked[split]); n > 0 {
			options.remark("%s: %d of %d %s images are copies of images in other splits, which makes scores too good, such as %s",
				d.Name, n, d.Len(), Split(split), firstFew(leaked[split]))
		}
	}
	if unclear > 0 {
		options.remark("%s: %d images have copies with another label, such as %s", splits.name(), unclear, firstFew(contradictory))
	}
}

// class returns the name of an image's class.
func (p place) class() string { return p.dataset.ClassNames[p.dataset.Labels[p.index]] }

// name returns the name of the data set.
func (s *Splits) name() string {
	for _, d := range []*Dataset{s.Train, s.Test, s.Validation} {
		if d != nil {
			return d.Name
		}
	}
	return ""
}

// firstFew lists the first three of a list of names.
func firstFew(names []string) string {
	const few = 3
	if len(names) > few {
		return strings.Join(names[:few], ", ") + ", ..."
	}
	return strings.Join(names, ", ")
}
