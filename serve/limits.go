package serve

import (
	"context"
	"sync"
	"sync/atomic"
)

// budget is a number of bytes that all requests share.
type budget struct {
	most int64
	used atomic.Int64
}

// take takes that many bytes, or none and returns false if there are not enough.
func (b *budget) take(bytes int) bool {
	if b.used.Add(int64(bytes)) <= b.most {
		return true
	}
	b.used.Add(-int64(bytes))
	return false
}

func (b *budget) giveBack(bytes int) { b.used.Add(-int64(bytes)) }

// turns lets holders of together at most free units go on, and others wait their turn, first come,
// first served.
type turns struct {
	mu      sync.Mutex
	free    int
	waiting []*turn
}

type turn struct {
	units int
	come  chan struct{} // closed when it has its units
}

// wait returns when it has that many units, which may not exceed the total, or with the context's
// error.
func (t *turns) wait(ctx context.Context, units int) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	t.mu.Lock()
	if len(t.waiting) == 0 && t.free >= units {
		t.free -= units
		t.mu.Unlock()
		return nil
	}
	mine := &turn{units, make(chan struct{})}
	t.waiting = append(t.waiting, mine)
	t.mu.Unlock()
	select {
	case <-mine.come:
		return nil
	case <-ctx.Done():
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	for i, other := range t.waiting {
		if other == mine {
			t.waiting = append(t.waiting[:i], t.waiting[i+1:]...)
			t.admit()
			return ctx.Err()
		}
	}
	t.free += units // it had its turn at the same moment
	t.admit()
	return ctx.Err()
}

// end gives units back.
func (t *turns) end(units int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.free += units
	t.admit()
}

func (t *turns) admit() {
	for len(t.waiting) > 0 && t.free >= t.waiting[0].units {
		t.free -= t.waiting[0].units
		close(t.waiting[0].come)
		t.waiting = t.waiting[1:]
	}
}
