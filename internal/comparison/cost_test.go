package comparison

import (
	"context"
	"testing"
	"time"

	"github.com/pollen-ml/pollen/bayes"
)

// TestCost: the time of a step is the mean over the steps after the first two.
func TestCost(t *testing.T) {
	seen, clock := 0, time.Unix(0, 0)
	now := func() time.Time { return clock }
	spec := entries()[0].Spec
	steps, step, err := Cost(context.Background(), spec, stripes(t).Train, 8, now, func(e bayes.Event) {
		if e.Remark == "" {
			seen = e.Done
			clock = clock.Add(time.Second / time.Duration(seen)) // 1/2, 1/4, 1/6 and 1/8 of a second
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	if steps != 12 || seen != 8 {
		t.Errorf("%d steps, and the last one seen is %d, want 12 and 8", steps, seen)
	}
	if want := time.Second * 13 / 24 / 6; step.Round(time.Millisecond) != want.Round(time.Millisecond) {
		t.Errorf("a step takes %v, want %v", step, want)
	}
	spec.Batch = 100
	if _, _, err := Cost(context.Background(), spec, stripes(t).Train, 8, now, nil); err == nil {
		t.Error("a batch larger than the data: no error")
	}
}
