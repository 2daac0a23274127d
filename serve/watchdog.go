package serve

import (
	"sync/atomic"
	"time"

	"github.com/pkg/errors"
)

// watchdog counts operations that have not ended in time.
type watchdog struct {
	stuck  atomic.Int64
	report func(error)
}

// watch reports an operation that has not ended after the given time. The caller must call ended
// when it has ended.
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
