package datasets

import (
	"fmt"
	"slices"
)

// ClassCounts has the number of images of each class in each split.
type ClassCounts struct {
	Names  []string // of the classes
	Counts [3][]int // by Split, then by class; nil for a split without images or without labels
}

// ClassCounts counts the images of each class.
func (s *Splits) ClassCounts() ClassCounts {
	var c ClassCounts
	for split, d := range s.all() {
		if d.Labels == nil {
			continue
		}
		c.Counts[split] = d.Counts()
		if c.Names == nil {
			c.Names = d.ClassNames
		}
	}
	return c
}

// Remarks returns sentences on what makes answers or guarantees for a class unreliable: classes
// with few training images, classes without an image in a split, and imbalance.
func (c ClassCounts) Remarks() []string {
	const few, imbalanced = 10, 10.0 // training images of a class; times the smallest class
	var remarks []string
	train := c.Counts[Train]
	if train == nil {
		return nil
	}
	if list := c.list(train, func(n int) bool { return n < few }); len(list) > 0 {
		remarks = append(remarks, fmt.Sprintf("%d of %d classes have fewer than %d training images, too few to learn from: %s",
			len(list), len(c.Names), few, abbreviated(list)))
	}
	for _, split := range []Split{Test, Validation} {
		if text := c.Missing(split); text != "" {
			remarks = append(remarks, text)
		}
	}
	largest, smallest := slices.Max(train), slices.Min(train)
	if smallest > 0 && float64(largest) > imbalanced*float64(smallest) {
		remarks = append(remarks, fmt.Sprintf("classes are imbalanced: %s has %d training images, %s has %d; look at the balanced accuracy",
			c.Names[slices.Index(train, largest)], largest, c.Names[slices.Index(train, smallest)], smallest))
	}
	return remarks
}

// Missing returns a sentence on the classes without an image in the test or validation split. It is
// "" if there are none.
func (c ClassCounts) Missing(split Split) string {
	list := c.list(c.Counts[split], func(n int) bool { return n == 0 })
	if len(list) == 0 {
		return ""
	}
	what := "scores are of the others only"
	if split == Validation {
		what = "the calibration is for the others only"
	}
	return fmt.Sprintf("%d of %d classes have no %s images: %s; %s", len(list), len(c.Names), split, abbreviated(list), what)
}

// list returns the names of the classes whose counts satisfy wanted, each with its count unless
// that is 0.
func (c ClassCounts) list(counts []int, wanted func(int) bool) (names []string) {
	for class, n := range counts {
		switch {
		case !wanted(n):
		case n == 0:
			names = append(names, c.Names[class])
		default:
			names = append(names, fmt.Sprintf("%s (%d)", c.Names[class], n))
		}
	}
	return names
}
