package main

import (
	"context"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/pollen-ml/pollen/bayes"
	"github.com/pollen-ml/pollen/tensor"
)

// interval is the time between lines of progress.
const interval = 10 * time.Second

// work is the state of the cells being made.
type work struct {
	mu          sync.Mutex
	out         io.Writer
	now         func() time.Time
	start, last time.Time
	total, done int // steps of all missing cells, and those made, including earlier processes
	made        int // steps made by this process
	cells       int
	results     []*result
	failed      error
}

// observer returns an observer that counts the steps of a cell.
func (w *work) observer(c cell) bayes.Observer {
	before := 0
	return func(e bayes.Event) {
		w.mu.Lock()
		defer w.mu.Unlock()
		switch {
		case e.Remark != "":
			fmt.Fprintf(w.out, "%s: %s\n", c, e.Remark)
		case e.Task == "fit":
			w.done, w.made, before = w.done+e.Done-before, w.made+e.Images/batch, e.Done
			w.show(false)
		}
	}
}

// show prints progress if now is set or the interval has passed.
func (w *work) show(now bool) {
	t := w.now()
	if !now && t.Sub(w.last) < interval {
		return
	}
	w.last = t
	elapsed := t.Sub(w.start)
	status := fmt.Sprintf("in %s", elapsed.Round(time.Second))
	if w.done < w.total && w.made > 0 {
		status = fmt.Sprintf("eta %s", (elapsed / time.Duration(w.made) * time.Duration(w.total-w.done)).Round(time.Second))
	}
	fmt.Fprintf(w.out, "table  %3d%%  %d of %d cells  %s\n", 100*w.done/max(1, w.total), len(w.results), w.cells, status)
}

// finish records a cell's result or error, and reports whether to continue.
func (w *work) finish(r *result, err error) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err == nil {
		w.results = append(w.results, r)
		w.show(len(w.results) == w.cells)
	} else if w.failed == nil {
		w.failed = err
	}
	return err == nil
}

// makeCells makes cells, jobs at a time, and writes each when it is done. If one fails, it returns
// those done until then, and the error.
func (t *study) makeCells(ctx context.Context, cells []cell) ([]*result, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	w := &work{out: t.progress, now: t.now, start: t.now(), last: t.now(), cells: len(cells)}
	queue := make(chan cell, len(cells))
	for _, c := range cells {
		w.total += c.steps()
		queue <- c
	}
	close(queue)
	var workers sync.WaitGroup
	for range min(t.jobs, len(cells)) {
		workers.Go(func() {
			device := tensor.NewHost(1)
			defer device.Close()
			for c := range queue {
				r, err := c.make(ctx, t.train, t.test, t.dir, bayes.WithDevice(device), bayes.WithObserver(w.observer(c)))
				if err == nil {
					err = r.write(t.dir)
				}
				if !w.finish(r, err) {
					cancel()
					return
				}
			}
		})
	}
	workers.Wait()
	return w.results, w.failed
}
