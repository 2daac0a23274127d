package tensor

import (
	"sync/atomic"

	"github.com/pkg/errors"
)

// pool is a fixed team of goroutines that share out numbered items. The caller is worker 0. A
// waiting worker spins for a short while, since launches follow each other closely, and then
// sleeps: when other programs run too, a spinning thread takes processor time from the one that it
// waits for.
//
// Each worker begins with a part of the items that is its own, the same part in every round:
// launches that follow each other cut their tensors alike, and what a worker has written is in its
// processor's cache. Who has done with these takes others', from their ends. A round ends when its
// items are done, whoever did them: nobody waits for a worker that is late because it sleeps or
// because other programs have its processor.
type pool struct {
	workers int
	work    func(worker, item int)
	ranges  []itemRange
	round   atomic.Uint32
	pending atomic.Int64 // items that are not done
	asleep  []atomic.Bool
	wake    []chan struct{}
	closed  atomic.Bool
}

// part is what is left of a worker's items: the round, in the bits from 48 on, the first of them,
// from 24 on, and the one after the last. A cache line is its own.
type itemRange struct {
	atomic.Uint64
	_ [56]byte
}

// maxItems is the most that a part counts.
const maxItems = 1<<24 - 1

func (p *itemRange) set(round uint16, first, end int) {
	p.Store(uint64(round)<<48 | uint64(first)<<24 | uint64(end))
}

// take returns the first item of a round that is left or, to a worker whose items they are not, the
// last one; -1 if there is none. A worker that is late in an earlier round takes nothing: it would
// begin with what is another's.
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

// spins is how often a waiting worker looks before it sleeps: about ten microseconds, what a wake
// costs.
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

// run calls work(worker, item) for every item below items, each once, and waits for all.
func (p *pool) run(items int, work func(worker, item int)) {
	if p.workers == 1 || items <= 1 {
		for i := range items {
			work(0, i)
		}
		return
	}
	if items > maxItems {
		panic(errors.Errorf("tensor: a round of %d items, at most %d", items, maxItems))
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

// rouse wakes as many sleeping workers as there are items for.
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

// drain takes items of a round and does them until none is left.
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

// await returns once ready reports true; whoever makes it true wakes a worker that sleeps.
func (p *pool) await(worker int, ready func() bool) {
	for i := 0; !ready(); i++ {
		if i < spins {
			continue
		}
		p.asleep[worker].Store(true)
		// Whatever changed since the last look did not see the flag: take it back, unless a wake is
		// under way.
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
