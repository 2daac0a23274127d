package datasets

import (
	"cmp"
	"iter"
)

// Split is the part of a data set for training, testing or validation.
type Split int

// The splits, as defined by the data set's authors or drawn by Open.
const (
	Train Split = iota
	Test
	Validation
)

// String returns "train", "test" or "validation".
func (s Split) String() string {
	switch s {
	case Train:
		return "train"
	case Test:
		return "test"
	case Validation:
		return "validation"
	default:
		return "unknown"
	}
}

// Splits are the parts of a data set, with images of the same shape. Open returns parts with the
// same classes, Mean and Std. In splits made by hand these may differ: networks normalise all
// images by Train's Mean and Std, and classes are matched by name. Validation and Test may be nil.
type Splits struct{ Train, Validation, Test *Dataset }

// newSplits returns the splits of an array by Split.
func newSplits(all [3]*Dataset) *Splits {
	return &Splits{Train: all[Train], Validation: all[Validation], Test: all[Test]}
}

// array returns the splits by Split; those that are not there are nil.
func (s *Splits) array() [3]*Dataset {
	return [3]*Dataset{Train: s.Train, Validation: s.Validation, Test: s.Test}
}

// all iterates over the splits that are there, in the order of Split.
func (s *Splits) all() iter.Seq2[Split, *Dataset] { return present(s.array()) }

// present iterates over the elements of an array by Split that are not nil.
func present[T any](all [3]*T) iter.Seq2[Split, *T] {
	return func(yield func(Split, *T) bool) {
		for split, one := range all {
			if one != nil && !yield(Split(split), one) {
				return
			}
		}
	}
}

// first returns the first split that is there.
func (s *Splits) first() *Dataset { return cmp.Or(s.Train, s.Test, s.Validation) }
