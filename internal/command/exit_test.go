package command

import (
	"testing"

	"github.com/pkg/errors"
)

// TestErrorText: a package is named once, where it is named first.
func TestErrorText(t *testing.T) {
	for text, want := range map[string]string{
		"datasets: a: must be b":                                    "datasets: a: must be b",
		"pollen: calibrate: datasets: d: datasets: e: datasets: f":  "pollen: calibrate: datasets: d: e: f",
		"pollen: run stopped: pollen: no room":                      "pollen: run stopped: no room",
		"start: pollen: a is not the directory of a run: pollen: b": "start: pollen: a is not the directory of a run: b",
		"no package: samples":                                       "no package: samples",
		"pollen: pollen: a":                                         "pollen: a",
		"":                                                          "",
	} {
		if got := errorText(errors.New(text)); got != want {
			t.Errorf("errorText(%q) = %q, want %q", text, got, want)
		}
	}
}
