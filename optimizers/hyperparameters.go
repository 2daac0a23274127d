package optimizers

import (
	"cmp"
	"math"

	"github.com/pkg/errors"
)

// minNormal is the smallest positive number that float32 represents in full precision. Its inverse
// is finite in float32, too.
const minNormal = 0x1p-126

// check returns the first error of an optimizer's hyperparameters.
func check(o Optimizer, errs ...error) error {
	return errors.Wrapf(cmp.Or(errs...), "optimizers: %s", o.Name())
}

func nonNegative(field string, v float64) error {
	if v >= 0 && v <= math.MaxFloat32 {
		return nil
	}
	return errors.Errorf("%s must be at least 0 and finite in float32, got %v", field, v)
}

func positive(field string, v float64) error {
	if v >= minNormal && v <= math.MaxFloat32 {
		return nil
	}
	return errors.Errorf("%s must be above 0 and normal in float32, got %v", field, v)
}

// belowOne also rejects numbers that float32 rounds to 1: a running mean with this decay would
// never forget.
func belowOne(field string, v float64) error {
	if v >= 0 && float32(v) < 1 {
		return nil
	}
	return errors.Errorf("%s must be at least 0 and below 1, got %v", field, v)
}
