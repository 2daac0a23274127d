package layers

import (
	"fmt"
	"math"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/graph"
)

// limit is an attribute with its allowed interval, [min, below).
type limit struct {
	attribute  string // the field
	value      float64
	min, below float64
	optional   bool // 0 stands for a default
}

// limited is a layer or an initializer with attributes that can be wrong for every input.
type limited interface{ limits() []limit }

func atLeast[N int | float64](attribute string, value, least N) limit {
	return limit{attribute: attribute, value: float64(value), min: float64(least), below: math.Inf(1)}
}

// atLeastIfSet returns the limit of an attribute for which 0 stands for a default.
func atLeastIfSet[N int | float64](attribute string, value, least N) limit {
	l := atLeast(attribute, value, least)
	l.optional = true
	return l
}

func (l limit) holds() bool {
	return l.value >= l.min && l.value < l.below || l.optional && l.value == 0
}

// String returns the interval as text: "at least 0 and below 1".
func (l limit) String() string {
	if l.optional && l.min == 0 {
		return "positive"
	}
	if math.IsInf(l.below, 1) {
		return fmt.Sprintf("at least %v", l.min)
	}
	return fmt.Sprintf("at least %v and below %v", l.min, l.below)
}

// checkLimits fails the builder if an attribute is outside its limits.
func checkLimits(b *graph.Builder, name string, layer limited) bool {
	for _, l := range layer.limits() {
		if !l.holds() {
			b.Fail(errors.Errorf("layers: %s: %s must be %v, got %v", name, l.attribute, l, l.value))
		}
	}
	return b.Err() == nil
}
