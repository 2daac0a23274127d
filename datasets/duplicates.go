package datasets

import (
	"fmt"
	"slices"
	"strings"
)

// found has the duplicates of one kind.
type found struct {
	places   []place
	examples []string
}

func (f *found) add(p place, example string) {
	f.places, f.examples = append(f.places, p), append(f.examples, example)
}

// of returns the duplicates that are in a split.
func (f found) of(split Split) (part found) {
	for i, p := range f.places {
		if p.split == split {
			part.add(p, f.examples[i])
		}
	}
	return part
}

// exactDuplicates returns the images that are copies of an image in an earlier split (leaked),
// and those that have a copy with another label (unclear), with an example for each group of
// copies.
func exactDuplicates(splits *Splits) (leaked, unclear found) {
	for _, group := range copies(splits) {
		from, other := group[0], -1
		for i, p := range group[1:] {
			if p.split != from.split {
				leaked.add(p, fmt.Sprintf("%v and %v", p, from))
			}
			if labelled := p.dataset.Labels != nil && from.dataset.Labels != nil; other < 0 && labelled &&
				p.dataset.Labels[p.index] != from.dataset.Labels[from.index] {
				other = i + 1
			}
		}
		if other >= 0 {
			unclear.places = append(unclear.places, group...)
			unclear.examples = append(unclear.examples, fmt.Sprintf("%v (%s) and %v (%s)", from, from.class(), group[other], group[other].class()))
		}
	}
	return leaked, unclear
}

// checkDuplicates finds images that are in several splits or under several labels, and remarks on
// them, drops them or refuses them as the options request.
func (o Options) checkDuplicates(splits *Splits) error {
	leaked, unclear := exactDuplicates(splits)
	var near found
	exact := map[place]bool{}
	for _, p := range leaked.places {
		exact[p] = true
	}
	for _, pair := range nearCopies(splits) {
		if !exact[pair[0]] {
			near.add(pair[0], fmt.Sprintf("%v and %v", pair[0], pair[1]))
		}
	}
	var texts []string
	for _, kind := range []struct {
		found
		what string
	}{{leaked, "copies of"}, {near, "nearly the same as"}} {
		for split, d := range splits.all() {
			if part := kind.of(split); len(part.places) > 0 {
				texts = append(texts, fmt.Sprintf("%s: %d of %d %s images are %s images in other splits, which makes scores too good, such as %s",
					d.Name, len(part.places), d.Len(), split, kind.what, firstFew(part.examples)))
			}
		}
	}
	if n := len(unclear.places); n > 0 {
		texts = append(texts, fmt.Sprintf("%s: %d images have copies with another label, such as %s", splits.first().Name, n, firstFew(unclear.examples)))
	}
	if len(texts) > 0 && o.duplicates() == RejectDuplicates {
		return invalid("Duplicates", "%s", strings.Join(texts, "\n"))
	}
	for _, text := range texts {
		if o.duplicates() == DropDuplicates {
			text += " (dropped)"
		}
		o.remark("%s", text)
	}
	if o.duplicates() != DropDuplicates || len(texts) == 0 {
		return nil
	}
	return splits.drop(slices.Concat(leaked.places, near.places, unclear.places))
}

// drop removes images. It is an error if none remain of a split, or of a class in training.
func (s *Splits) drop(places []place) error {
	dropped := map[place]bool{}
	for _, p := range places {
		dropped[p] = true
	}
	for split, part := range map[Split]**Dataset{Train: &s.Train, Test: &s.Test, Validation: &s.Validation} {
		d := *part
		if d == nil {
			continue
		}
		var kept []int
		for i := range d.Len() {
			if !dropped[place{d, split, i}] {
				kept = append(kept, i)
			}
		}
		if len(kept) == d.Len() {
			continue
		}
		if len(kept) == 0 {
			return invalid("Duplicates", "%s: must leave an image of the %s split, got copies only", d.Name, split)
		}
		*part = d.subset(kept)
		if split != Train {
			continue
		}
		for class, count := range (*part).Counts() {
			if count == 0 && d.Counts()[class] > 0 {
				return invalid("Duplicates", "%s: must leave a training image of class %s, got only images with copies of another label", d.Name, d.ClassNames[class])
			}
		}
	}
	return nil
}
