package report

import (
	"math"

	"github.com/pkg/errors"
)

// checkMethods checks that there is something to draw and that every method has a name of its own.
func checkMethods(figure string, names []string) error {
	if len(names) == 0 {
		return errors.Errorf("report: %s: got no methods, want at least 1", figure)
	}
	seen := map[string]bool{}
	for i, name := range names {
		if name == "" || seen[name] {
			return errors.Errorf("report: %s: method %d is named %q, want a name of its own", figure, i, name)
		}
		seen[name] = true
	}
	return nil
}

// checkFinite checks that there are values and that each is a finite number.
func checkFinite(figure, what string, values []float64) error {
	if len(values) == 0 {
		return errors.Errorf("report: %s: %s: got no values, want at least 1", figure, what)
	}
	for i, v := range values {
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return errors.Errorf("report: %s: %s: value %d is %v, want a finite number", figure, what, i, v)
		}
	}
	return nil
}
