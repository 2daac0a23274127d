package datasets

import (
	"cmp"
	"hash/fnv"
	"math"
	"slices"
	"strings"

	"github.com/pkg/errors"
)

// subset returns a copy of the images with the given indices, with d's Mean and Std.
func (d *Dataset) subset(indices []int) *Dataset {
	size := d.ImageSize()
	part := *d
	part.Images = make([]byte, 0, len(indices)*size)
	for _, i := range indices {
		part.Images = append(part.Images, d.Image(i)...)
	}
	part.Labels, part.Files = picked(d.Labels, indices), picked(d.Files, indices)
	part.Groups, part.IDs = picked(d.Groups, indices), picked(d.IDs, indices)
	return &part
}

// picked returns some values of a list with a value for each image, nil if the list is.
func picked[T any](list []T, indices []int) (values []T) {
	if list != nil {
		for _, i := range indices {
			values = append(values, list[i])
		}
	}
	return values
}

// First returns n images: the first ones, or, if the data are sorted by class, as image directories
// are, evenly spaced ones, so that every class with at least Len/n images is represented. The
// result may share its memory with d. It returns an error unless 0 < n <= Len.
func (d *Dataset) First(n int) (*Dataset, error) {
	if n < 1 || n >= d.Len() || !d.sorted() {
		return d.Slice(0, n)
	}
	if err := checkCopy(d, n); err != nil {
		return nil, err
	}
	return d.subset(d.FirstIndices(n)), nil
}

// FirstIndices returns the indices of the images that First returns, in order.
func (d *Dataset) FirstIndices(n int) []int {
	indices, spaced := make([]int, n), n < d.Len() && d.sorted()
	for i := range indices {
		if indices[i] = i; spaced {
			indices[i] = int(int64(i) * int64(d.Len()) / int64(n))
		}
	}
	return indices
}

// sorted reports whether the images have labels of more than one class and are sorted by them.
func (d *Dataset) sorted() bool {
	return len(d.Labels) > 0 && d.Labels[0] != d.Labels[len(d.Labels)-1] && slices.IsSorted(d.Labels)
}

// Stratified draws a fraction of the images of each class into part, rounded, but at least one and
// not all of a class of two or more; the only image of a class stays in rest. The draw depends on
// the seed and on the images' file names, or on their positions if Files is nil, so that most
// images stay on their side when others are added or removed. Both results keep d's order, Mean and
// Std. It returns an error if the fraction is not inside (0, 1), if d has no labels, or if nothing
// is drawn.
//
// If d has Groups, whole groups are drawn, in an order that depends on the seed and their names.
// A group is drawn if it brings the numbers of images of its classes closer to the fraction; at
// least one group of a class with several groups is drawn, and each class keeps a group in rest.
func (d *Dataset) Stratified(fraction float64, seed uint64) (rest, part *Dataset, err error) {
	if !(fraction > 0 && fraction < 1) {
		return nil, nil, errors.Errorf("datasets: %s: fraction must be inside (0, 1), got %v", d.Name, fraction)
	}
	if d.Labels == nil {
		return nil, nil, errors.Errorf("datasets: %s: must have labels to draw a fraction of each class", d.Name)
	}
	if d.Groups != nil {
		drawn, err := d.drawGroups(fraction, seed)
		if err != nil {
			return nil, nil, err
		}
		return d.divided(drawn)
	}
	type keyed struct {
		key   uint64
		index int
	}
	byClass := make([][]keyed, d.Classes)
	for i, label := range d.Labels {
		key := uint64(i)
		if d.Files != nil {
			hash := fnv.New64a()
			hash.Write([]byte(d.Files[i]))
			key = hash.Sum64()
		}
		byClass[label] = append(byClass[label], keyed{mixed(mixed(key) ^ mixed(^seed)), i})
	}
	drawn, some := make([]bool, d.Len()), false
	for _, images := range byClass {
		if len(images) < 2 {
			continue
		}
		slices.SortFunc(images, func(a, b keyed) int {
			return cmp.Or(cmp.Compare(a.key, b.key), cmp.Compare(a.index, b.index))
		})
		n := min(max(int(math.Round(fraction*float64(len(images)))), 1), len(images)-1)
		for _, image := range images[:n] {
			drawn[image.index], some = true, true
		}
	}
	if !some {
		return nil, nil, errors.Errorf("datasets: %s: a class must have at least 2 images to draw one from, got at most 1", d.Name)
	}
	return d.divided(drawn)
}

// divided returns the images that are not drawn and those that are.
func (d *Dataset) divided(drawn []bool) (rest, part *Dataset, err error) {
	var kept, taken []int
	for i, is := range drawn {
		if is {
			taken = append(taken, i)
		} else {
			kept = append(kept, i)
		}
	}
	if err := checkCopy(d, d.Len()); err != nil {
		return nil, nil, err
	}
	return d.subset(kept), d.subset(taken), nil
}

// WithClasses returns the images of the named classes, labelled 0, 1, ... in the order of d's
// classes, with d's Mean and Std. Names that are numbers may have leading zeros. It returns an
// error if d has no such class, or no image of the classes.
func (d *Dataset) WithClasses(names ...string) (*Dataset, error) {
	names = d.spelled(names)
	if d.Labels == nil {
		return nil, errors.Errorf("datasets: %s: must have labels to select classes", d.Name)
	}
	if unknown := missing(names, d.ClassNames); unknown != "" {
		return nil, errors.Errorf("datasets: %s: classes must be some of %[3]s, got %[2]q", d.Name, unknown, abbreviated(d.ClassNames))
	}
	labels := make([]int32, d.Classes)
	var classNames []string
	for class, name := range d.ClassNames {
		labels[class] = -1
		if slices.Contains(names, name) {
			labels[class] = int32(len(classNames))
			classNames = append(classNames, name)
		}
	}
	var indices []int
	for i, label := range d.Labels {
		if labels[label] >= 0 {
			indices = append(indices, i)
		}
	}
	if len(indices) == 0 {
		return nil, errors.Errorf("datasets: %s: must have an image of the classes %s", d.Name, strings.Join(names, ", "))
	}
	if err := checkCopy(d, len(indices)); err != nil {
		return nil, err
	}
	part := d.subset(indices)
	part.Classes, part.ClassNames = len(classNames), classNames
	for i, label := range part.Labels {
		part.Labels[i] = labels[label]
	}
	return part, nil
}

// WithoutClasses returns the images of all classes except the named ones, as WithClasses does. The
// held-out classes can serve as out-of-distribution data.
func (d *Dataset) WithoutClasses(names ...string) (*Dataset, error) {
	names = d.spelled(names)
	if unknown := missing(names, d.ClassNames); unknown != "" {
		return nil, errors.Errorf("datasets: %s: classes must be some of %[3]s, got %[2]q", d.Name, unknown, abbreviated(d.ClassNames))
	}
	return d.WithClasses(slices.DeleteFunc(slices.Clone(d.ClassNames), func(name string) bool {
		return slices.Contains(names, name)
	})...)
}

// spelled returns the names, with numbers spelled as in d's classes.
func (d *Dataset) spelled(names []string) []string {
	names = slices.Clone(names)
	for i, name := range names {
		if canonical := canonicalClass(name); slices.Contains(d.ClassNames, canonical) && !slices.Contains(d.ClassNames, name) {
			names[i] = canonical
		}
	}
	return names
}

// missing returns the first of the names that is not among known, or "".
func missing(names, known []string) string {
	for _, name := range names {
		if !slices.Contains(known, name) {
			return name
		}
	}
	return ""
}
