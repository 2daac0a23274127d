package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/bayes"
	"github.com/pollen-ml/pollen/internal/file"
)

// textOf returns a value as text, with all digits.
func textOf(value any) string {
	text, err := json.Marshal(value)
	if err != nil {
		return fmt.Sprintf("%+v", value) // not finite
	}
	return string(text)
}

// trouble is a fault of a call that writes.
type trouble struct {
	name string
	do   func(bytes int) (keep int, err error)
}

var troubles = []trouble{
	{"fails", func(int) (int, error) { return 0, syscall.EIO }},
	{"is torn", func(bytes int) (int, error) { return bytes / 2, syscall.ENOSPC }},
	{"waits", func(int) (int, error) { time.Sleep(5 * time.Millisecond); return 0, nil }},
}

// disks makes each call that writes fail, tear or wait in turn.
func disks(h *harness) error {
	s, err := h.subject()
	if err != nil {
		return err
	}
	defer s.host.Close()
	calls, err := s.fitWith(filepath.Join(h.work, "counted"), func(int, int) (int, error) { return 0, nil })
	if err != nil {
		return err
	}
	h.report("a run makes %d calls that write", calls)
	stride := max(1, calls/h.calls)
	tried, survived := 0, 0
	for n := 0; n < calls && h.ctx.Err() == nil; n += stride {
		for _, what := range troubles {
			dir := filepath.Join(h.work, "disk")
			if err := os.RemoveAll(dir); err != nil {
				return errors.Wrap(err, "disks")
			}
			tried++
			_, err := s.fitWith(dir, func(call, bytes int) (int, error) {
				if call != n {
					return 0, nil
				}
				return what.do(bytes)
			})
			if err == nil {
				survived++
			} else {
				_, err = bayes.Resume(context.Background(), dir, s.data, bayes.WithDevice(s.host))
				var none *bayes.NotARunError
				if errors.As(err, &none) {
					_, err = bayes.Fit(context.Background(), s.spec, s.data, dir, bayes.WithDevice(s.host))
				}
			}
			if err != nil {
				h.fail("call %d %s: the run cannot be resumed: %v", n, what.name, err)
				continue
			}
			got, err := results(dir)
			if err != nil {
				return err
			}
			if d := difference(s.want, got); d != "" {
				h.fail("call %d %s: %s", n, what.name, d)
			}
		}
	}
	h.report("%d faults: %d runs were unaffected, the others reported an error and were resumed to the same bytes", tried, survived)
	return nil
}

// fitWith fits with injected faults, which receive the number of the call, and returns the number
// of calls.
func (s *subject) fitWith(dir string, fault func(call, bytes int) (int, error)) (calls int, err error) {
	var mu sync.Mutex
	end := file.Inject(func(_, _ string, bytes int) (int, error) {
		mu.Lock()
		defer mu.Unlock()
		calls++
		return fault(calls-1, bytes)
	})
	defer end()
	_, err = bayes.Fit(context.Background(), s.spec, s.data, dir, bayes.WithDevice(s.host))
	return calls, err
}
