package tensor

import "sync/atomic"

// pool is a fixed team of goroutines that share out numbered items. The caller is worker 0. A
// waiting worker spins for a short while, since launches follow each other closely, and then
// sleeps: when other programs run too, a spinning thread takes processor time from the one that it
// waits for.
//
// A round ends when its items are done, whoever did them: nobody waits for a worker that is late
// because it sleeps or because other programs have its processor.
type pool struct {
	workers int
	work    func(worker, item int)
	items   uint32
	round   uint32
	state   atomic.Uint64 // the round and, in the lower half, how many of its items are not taken
	pending atomic.Int64  // items that are not done
	asleep  []atomic.Bool
	wake    []chan struct{}
	closed  atomic.Bool
}

// spins is how often a waiting worker looks before it sleeps: about ten microseconds, what a wake
// costs.
const spins = 10000

func newPool(workers int) *pool {
	p := &pool{workers: workers, asleep: make([]atomic.Bool, workers), wake: make([]chan struct{}, workers)}
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
	p.work, p.items = work, uint32(items)
	p.round++
	p.pending.Store(int64(items))
	p.state.Store(uint64(p.round)<<32 | uint64(items))
	p.rouse(items)
	p.drain(0)
	p.await(0, p.allDone)
}

// rouse wakes as many sleeping workers as there are items for.
func (p *pool) rouse(items int) {
	for w := 1; w < p.workers && w < items; w++ {
		p.rouseOne(w)
	}
}

func (p *pool) rouseOne(worker int) {
	if p.asleep[worker].CompareAndSwap(true, false) {
		p.wake[worker] <- struct{}{}
	}
}

// drain takes items and does them until none is left.
func (p *pool) drain(worker int) {
	for {
		s := p.state.Load()
		left := uint32(s)
		if left == 0 {
			return
		}
		if !p.state.CompareAndSwap(s, s-1) {
			continue
		}
		p.work(worker, int(p.items-left))
		if p.pending.Add(-1) == 0 && worker != 0 {
			p.rouseOne(0)
		}
	}
}

func (p *pool) allDone() bool { return p.pending.Load() == 0 }

func (p *pool) hasWork() bool { return uint32(p.state.Load()) > 0 || p.closed.Load() }

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
	for {
		p.await(worker, p.hasWork)
		if p.closed.Load() {
			return
		}
		p.drain(worker)
	}
}

func (p *pool) close() {
	p.closed.Store(true)
	p.rouse(p.workers)
}
