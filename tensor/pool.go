package tensor

import (
	"sync/atomic"

	"github.com/pkg/errors"
)

// pool is a fixed team of workers that run numbered items in rounds. The caller is worker 0. A
// waiting worker spins briefly, since launches follow each other closely, and then sleeps: when
// other programs are running, a spinning thread would take processor time from the thread that it
// waits for.
//
// Each worker starts with its own range of the items, the same in every round. Consecutive launches
// divide their tensors alike, so a worker finds in its core's cache what it wrote before. A worker
// that has finished its range steals from the ends of the others'. A round ends when its items are
// done, whoever ran them: nobody waits for a worker that is late because it sleeps or was
// descheduled.
type pool struct {
	workers int
	work    func(worker, item int)
	ranges  []itemRange
	round   atomic.Uint32
	pending atomic.Int64 // items that are not yet done
	asleep  []atomic.Bool
	wake    []chan struct{}
	closed  atomic.Bool
}

// itemRange is the range of a worker's remaining items, packed into one word so that it can be
// changed by compare-and-swap: the round in bits 48 to 63, the first item in bits 24 to 47, and the
// end in bits 0 to 23. Padding gives it a cache line of its own.
type itemRange struct {
	atomic.Uint64
	_ [56]byte
}

// maxItems is the largest number of items in a round.
const maxItems = 1<<24 - 1

func (p *itemRange) set(round uint16, first, end int) {
	p.Store(uint64(round)<<48 | uint64(first)<<24 | uint64(end))
}

// take removes and returns an item: the first that is left if the range is the worker's own, else
// the last. It returns -1 if the range is empty or belongs to another round. The round check stops
// a worker that is late from taking items of a round that it has not joined.
func (p *itemRange) take(round uint16, own bool) int {
	for {
		s := p.Load()
		first, end := s>>24&maxItems, s&maxItems
		switch {
		case uint16(s>>48) != round || first >= end:
			return -1
		case own && p.CompareAndSwap(s, s+1<<24):
			return int(first)
		case !own && p.CompareAndSwap(s, s-1):
			return int(end) - 1
		}
	}
}

// spins is the number of checks before a waiting worker sleeps: about ten microseconds, the cost of
// a wake-up.
const spins = 10000

func newPool(workers int) *pool {
	p := &pool{workers: workers, ranges: make([]itemRange, workers), asleep: make([]atomic.Bool, workers), wake: make([]chan struct{}, workers)}
	for w := range p.wake {
		p.wake[w] = make(chan struct{}, 1)
		if w > 0 {
			go p.serve(w)
		}
	}
	return p
}

// run calls work(worker, item) once for every item in [0, items) and waits until all are done.
// Calls of one worker do not overlap.
func (p *pool) run(items int, work func(worker, item int)) {
	if p.workers == 1 || items <= 1 {
		for i := range items {
			work(0, i)
		}
		return
	}
	if items > maxItems {
		panic(errors.Errorf("tensor: a round must have at most %d items, got %d", maxItems, items))
	}
	p.work = work
	p.pending.Store(int64(items))
	round := p.round.Load() + 1
	for w := range p.ranges {
		p.ranges[w].set(uint16(round), w*items/p.workers, (w+1)*items/p.workers)
	}
	p.round.Store(round)
	p.wakeWorkers(items)
	p.drain(0, round)
	p.await(0, p.allDone)
}

// wakeWorkers wakes sleeping workers, at most one per item.
func (p *pool) wakeWorkers(items int) {
	for w := 1; w < p.workers && w < items; w++ {
		p.wakeWorker(w)
	}
}

func (p *pool) wakeWorker(worker int) {
	if p.asleep[worker].CompareAndSwap(true, false) {
		p.wake[worker] <- struct{}{}
	}
}

// drain runs items of a round until none is left, starting with the worker's own range.
func (p *pool) drain(worker int, round uint32) {
	for other := range p.workers {
		whose := &p.ranges[(worker+other)%p.workers]
		for item := whose.take(uint16(round), other == 0); item >= 0; item = whose.take(uint16(round), other == 0) {
			p.work(worker, item)
			if p.pending.Add(-1) == 0 && worker != 0 {
				p.wakeWorker(0)
			}
		}
	}
}

func (p *pool) allDone() bool { return p.pending.Load() == 0 }

// await returns when ready reports true. Whoever makes it true must wake the worker if it sleeps.
func (p *pool) await(worker int, ready func() bool) {
	for i := 0; !ready(); i++ {
		if i < spins {
			continue
		}
		p.asleep[worker].Store(true)
		// A change made before the flag was set sends no wake-up, so check again. If the flag is
		// already taken back, a wake-up is under way and must be received.
		if ready() && p.asleep[worker].CompareAndSwap(true, false) {
			return
		}
		<-p.wake[worker]
	}
}

func (p *pool) serve(worker int) {
	round := uint32(0)
	called := func() bool { return p.round.Load() != round || p.closed.Load() }
	for {
		p.await(worker, called)
		if p.closed.Load() {
			return
		}
		round = p.round.Load()
		p.drain(worker, round)
	}
}

func (p *pool) close() {
	p.closed.Store(true)
	p.wakeWorkers(p.workers)
}
