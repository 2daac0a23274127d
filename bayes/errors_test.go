package bayes

import (
	"context"
	"testing"

	"github.com/pkg/errors"
)

// The error of an unfinished run has its package and the number of steps once.
func TestUnfinishedError(t *testing.T) {
	for want, e := range map[string]*UnfinishedError{
		"pollen: run stopped after 30 of 40 steps, 2 samples kept: context canceled": {
			Dir: "run", Made: 30, Steps: 40, Samples: 2, Cause: context.Canceled,
		},
		"pollen: run stopped after 0 of 40 steps, 0 samples kept: disk full": {
			Dir: "run", Steps: 40, Cause: errors.New("pollen: disk full"),
		},
	} {
		if e.Error() != want {
			t.Errorf("%q, want %q", e.Error(), want)
		}
	}
}
