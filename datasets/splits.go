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

// Splits are the parts of a data set, with the same shape, classes, Mean and Std. Validation and
// Test may be nil.
type Splits struct{ Train, Validation, Test *Dataset }
