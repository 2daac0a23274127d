package command

import (
	"testing"

	"github.com/pollen-ml/pollen/datasets"
)

// Classes without images to calibrate on are named, unless there are no images of the run's
// classes, which is an error.
func TestRemarkMissing(t *testing.T) {
	heldOut := &datasets.Dataset{
		Images: make([]byte, 2), Labels: []int32{0, 0}, ClassNames: []string{"a"}, Classes: 1, Channels: 1, Height: 1, Width: 1,
	}
	c, _, remarks, _ := testConsole()
	remarkMissing([]string{"b", "c"}, heldOut, c)
	if remarks.String() != "" {
		t.Errorf("remarks %q for other classes, want none", remarks)
	}
	remarkMissing([]string{"a", "b"}, heldOut, c)
	if want := "1 of 2 classes have no validation images: b; the calibration is for the others only\n"; remarks.String() != want {
		t.Errorf("remarks %q, want %q", remarks, want)
	}
}
