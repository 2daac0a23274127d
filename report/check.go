package report

import (
	"math"

	"github.com/pkg/errors"
)

// checkMethods returns an error unless there is at least one method and names are distinct.
func checkMethods(figure string, names []string) error {
	if len(names) == 0 {
		return errors.Errorf("report: %s: must have at least 1 method, got none", figure)
	}
	seen := map[string]bool{}
	for i, name := range names {
		if name == "" || seen[name] {
			return errors.Errorf("report: %s: methods must have distinct names, got %[3]q for method %[2]d", figure, i, name)
		}
		seen[name] = true
	}
	return nil
}

// checkFinite returns an error unless there are values and all are finite.
func checkFinite(figure, what string, values []float64) error {
	if len(values) == 0 {
		return errors.Errorf("report: %s: %s: must have at least 1 value, got none", figure, what)
	}
	for i, v := range values {
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return errors.Errorf("report: %s: %s: values must be finite, got %[4]v at %[3]d", figure, what, i, v)
		}
	}
	return nil
}
