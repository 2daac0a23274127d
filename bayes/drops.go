package bayes

import (
	"slices"

	"github.com/pollen-ml/pollen/layers"
)

// drops reports whether a layer, or a layer of a network, drops elements at random in training. The
// loss is then not a function of the weights.
func drops(layer layers.Layer) bool {
	switch l := layer.(type) {
	case layers.Dropout:
		return l.Rate > 0
	case layers.Residual:
		return drops(l.Body) || drops(l.Shortcut)
	case layers.Sequential:
		return slices.ContainsFunc(l, drops)
	}
	return false
}
