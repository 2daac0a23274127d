package pollen

import "github.com/pollen-ml/pollen/layers"

// namedNetwork is a network by its name, or by the text of a network file.
func namedNetwork(text string, classes int) (layers.Sequential, error) {
	return layers.New(text, classes)
}
