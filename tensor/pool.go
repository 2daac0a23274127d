package tensor

import (
	"runtime"
	"sync/atomic"
)

// pool is a fixed team of goroutines which share out numbered items. The caller is worker 0. Between two calls the others spin for a
// short while, since launches follow each other closely, and then sleep.
type pool struct {
	workers int
	work    func(worker, item int)
	items   int64
	next    atomic.Int64
	busy    atomic.Int64 // workers that have not finished the current round
	round   atomic.Uint64
	asleep  []atomic.Bool
	wake    []chan struct{}
	closed  atomic.Bool
}

// spins is how often a waiting worker looks for work before it sleeps: some tens of microseconds, the length of a small launch.
const spins = 4000

func newPool(workers int) *pool {
	p := &pool{workers: workers, asleep: make([]atomic.Bool, workers), wake: make([]chan struct{}, workers)}
	for w := 1; w < workers; w++ {
		p.wake[w] = make(chan struct{}, 1)
		go p.serve(w)
	}
	return p
}

// run calls work(worker, item) for every item below items, each once, and waits for all.
func (p *pool) run(items int, work func(worker, item int)) {
	if p.workers == 1 || items == 1 {
		for i := range items {
			work(0, i)
		}
		return
	}
	p.work, p.items = work, int64(items)
	p.next.Store(0)
	p.busy.Store(int64(p.workers - 1))
	p.start()
	p.drain(0)
	for i := 0; p.busy.Load() > 0; i++ {
		if i > spins {
			runtime.Gosched()
		}
	}
}

func (p *pool) start() {
	p.round.Add(1)
	for w := 1; w < p.workers; w++ {
		if p.asleep[w].CompareAndSwap(true, false) {
			p.wake[w] <- struct{}{}
		}
	}
}

func (p *pool) drain(worker int) {
	for {
		i := p.next.Add(1) - 1
		if i >= p.items {
			return
		}
		p.work(worker, int(i))
	}
}

func (p *pool) serve(worker int) {
	seen := uint64(0)
	for {
		for i := 0; p.round.Load() == seen; i++ {
			if i < spins {
				continue
			}
			p.asleep[worker].Store(true)
			// A round that began since the last look has not seen the flag: take it back, unless the wake is under way.
			if p.round.Load() != seen && p.asleep[worker].CompareAndSwap(true, false) {
				break
			}
			<-p.wake[worker]
		}
		seen = p.round.Load()
		if p.closed.Load() {
			return
		}
		p.drain(worker)
		p.busy.Add(-1)
	}
}

func (p *pool) close() {
	p.closed.Store(true)
	p.start()
}
