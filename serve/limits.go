package serve

import (
	"context"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
)

// A fraction 1/keptShare of a budget is only for small reservations, so that large bodies do not
// block requests with a few small images.
const (
	smallReservation = 64 << 10
	keptShare        = 8
)

// budget limits the bytes that all concurrent requests use.
type budget struct {
	limit int64
	used  atomic.Int64
}

// reserve reserves bytes and returns true, or returns false if too few are free.
func (b *budget) reserve(bytes int) bool {
	limit := b.limit
	if bytes > smallReservation {
		limit = b.most()
	}
	if b.used.Add(int64(bytes)) <= limit {
		return true
	}
	b.used.Add(-int64(bytes))
	return false
}

// most returns the bytes that reservations which are not small can have together.
func (b *budget) most() int64 { return b.limit - b.limit/keptShare }

func (b *budget) release(bytes int) { b.used.Add(-int64(bytes)) }

// reservation is the memory that a request has reserved from the budget. It is released when the
// request and all its decoders, which may outlive it, have called release.
type reservation struct {
	budget *budget
	bytes  int
	users  atomic.Int32
}

func newReservation(b *budget) *reservation {
	h := &reservation{budget: b}
	h.share()
	return h
}

func (h *reservation) share() { h.users.Add(1) }

// reserve reserves more bytes. The error is that the server is busy, unless the request would not
// fit into the memory of an idle one, either.
func (h *reservation) reserve(bytes int) error {
	if !h.budget.reserve(bytes) {
		if all := int64(h.bytes) + int64(bytes); all > h.budget.most() {
			return refuse(http.StatusRequestEntityTooLarge, "the request must take at most %d bytes of memory, got %d: send less at a time, and images as files "+
				"rather than in JSON", h.budget.most(), all)
		}
		return refuse(http.StatusServiceUnavailable, "the server is busy: not enough memory for this request")
	}
	h.bytes += bytes
	return nil
}

// giveBack releases a part of the memory before the request ends.
func (h *reservation) giveBack(bytes int) {
	h.budget.release(bytes)
	h.bytes -= bytes
}

func (h *reservation) release() {
	if h.users.Add(-1) == 0 {
		h.budget.release(h.bytes)
	}
}

// semaphore is a weighted semaphore with free units. Waiters with a lower cost are served first,
// waiters of equal cost in the order of their arrival.
type semaphore struct {
	mu      sync.Mutex
	free    int
	waiting []*waiter
}

type waiter struct {
	units, cost int
	ready       chan struct{} // closed when the waiter has its units
}

// acquire waits for the units, which must not exceed the total. It returns the context's error if
// the context ends first.
func (t *semaphore) acquire(ctx context.Context, units, cost int) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	t.mu.Lock()
	if len(t.waiting) == 0 && t.free >= units {
		t.free -= units
		t.mu.Unlock()
		return nil
	}
	mine := &waiter{units, cost, make(chan struct{})}
	place := slices.IndexFunc(t.waiting, func(w *waiter) bool { return w.cost > cost })
	if place < 0 {
		place = len(t.waiting)
	}
	t.waiting = slices.Insert(t.waiting, place, mine)
	t.mu.Unlock()
	select {
	case <-mine.ready:
		return nil
	case <-ctx.Done():
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	for i, other := range t.waiting {
		if other == mine {
			t.waiting = append(t.waiting[:i], t.waiting[i+1:]...)
			t.wakeWaiters()
			return ctx.Err()
		}
	}
	t.free += units // they were acquired at the moment when the context ended
	t.wakeWaiters()
	return ctx.Err()
}

// release releases units.
func (t *semaphore) release(units int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.free += units
	t.wakeWaiters()
}

func (t *semaphore) wakeWaiters() {
	for len(t.waiting) > 0 && t.free >= t.waiting[0].units {
		t.free -= t.waiting[0].units
		close(t.waiting[0].ready)
		t.waiting = t.waiting[1:]
	}
}
