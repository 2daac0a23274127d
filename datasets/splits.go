package datasets

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

// all iterates over the splits in the order of Split; those that are not there are nil.
func (s *Splits) all() func(yield func(Split, *Dataset) bool) {
	return func(yield func(Split, *Dataset) bool) {
		for split, d := range [3]*Dataset{Train: s.Train, Validation: s.Validation, Test: s.Test} {
			if !yield(Split(split), d) {
				return
			}
		}
	}
}

// name returns the name of the data set.
func (s *Splits) name() string {
	for _, d := range []*Dataset{s.Train, s.Test, s.Validation} {
		if d != nil {
			return d.Name
		}
	}
	return ""
}
