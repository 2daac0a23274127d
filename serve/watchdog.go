package serve

import (
	"sync/atomic"
	"time"

	"github.com/pkg/errors"
)

// watchdog counts the work that has not ended in its time.
type watchdog struct {
	stuck  atomic.Int64
	report func(error)
}

// watch reports work that has not ended after a time. The caller must call ended when it has.
func (w *watchdog) watch(work string, after time.Duration) (ended func()) {
	timer := time.AfterFunc(after, func() {
		w.stuck.Add(1)
		w.report(errors.Errorf("serve: %s has not ended after %v; /health reports it", work, after))
	})
	return func() {
		if !timer.Stop() {
			w.stuck.Add(-1)
		}
	}
}
