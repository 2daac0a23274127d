package pollen

import (
	"reflect"
	"testing"

	"github.com/pollen-ml/pollen/layers"
)

// Inputs of linear layers in blocks are dropped, too, but not the first layer's, whatever it is in.
func TestDropoutInBlocks(t *testing.T) {
	drop, linear := layers.Dropout{Rate: 0.5, AlsoPredicting: true}, layers.Linear{Outputs: 8}
	of := func(l ...layers.Layer) layers.Sequential { return l }
	for i, c := range [][2]layers.Sequential{
		{of(layers.Flatten{}, of(linear, linear), linear), of(layers.Flatten{}, of(linear, drop, linear), drop, linear)},
		{
			of(layers.Flatten{}, layers.Residual{Body: of(linear, layers.ReLU{}, linear), Shortcut: of(linear)}, linear),
			of(layers.Flatten{}, layers.Residual{Body: of(linear, layers.ReLU{}, drop, linear), Shortcut: of(linear)}, drop, linear),
		},
		{
			of(layers.Conv2D{}, layers.Residual{Body: of(linear), Shortcut: of(of(linear))}),
			of(layers.Conv2D{}, layers.Residual{Body: of(drop, linear), Shortcut: of(of(drop, linear))}),
		},
	} {
		got, err := Dropout{Rate: 0.5}.network(c[0])
		if err != nil || !reflect.DeepEqual(got, c[1]) {
			t.Errorf("case %d: %v (%v), want %v", i, got, err, c[1])
		}
	}
	if _, err := (Dropout{Rate: 0.5}).network(of(of(layers.Flatten{}, of(linear)))); err == nil {
		t.Error("a network of one layer: no error")
	}
}
