package comparison

import (
	"context"
	"testing"
	"time"

	"github.com/pollen-ml/pollen"
)

// TestCost: a step costs what the steps after the first two take, each of them its share.
func TestCost(t *testing.T) {
	seen := 0
	spec := entries()[0].Spec
	steps, step, err := Cost(context.Background(), spec, stripes(t).Train, 8, func(e pollen.Event) {
		if seen = e.Done; seen > 2 {
			time.Sleep(20 * time.Millisecond)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	if steps != 12 || seen != 8 {
		t.Errorf("%d steps, and the last one seen is %d, wants 12 and 8", steps, seen)
	}
	if step < 10*time.Millisecond {
		t.Errorf("a step takes %v, wants at least half of a window's 20 ms", step)
	}
	spec.Batch = 100
	if _, _, err := Cost(context.Background(), spec, stripes(t).Train, 8, nil); err == nil {
		t.Error("a batch larger than the data: no error")
	}
}
