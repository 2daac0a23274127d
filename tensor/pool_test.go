package tensor

import (
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// Every item is done once, by a worker of the team, before run returns; over many rounds, with and
// without pauses that let the workers sleep.
func TestPool(t *testing.T) {
	for _, workers := range []int{1, 2, 4} {
		p := newPool(workers)
		done := make([]int32, 1000) // not atomic: two workers with one item would be a race
		for round := range 300 {
			items := []int{0, 1, 2, 3, 7, 1000}[round%6]
			clear(done)
			var strangers atomic.Int32
			p.run(items, func(worker, item int) {
				if worker < 0 || worker >= workers {
					strangers.Add(1)
				}
				done[item]++
			})
			for item, n := range done {
				want := int32(0)
				if item < items {
					want = 1
				}
				if n != want {
					t.Fatalf("%d workers, round %d: item %d of %d is done %d times", workers, round, item, items, n)
				}
			}
			if n := strangers.Load(); n != 0 {
				t.Fatalf("%d workers: %d items went to workers that do not exist", workers, n)
			}
			if round%60 == 59 {
				time.Sleep(2 * time.Millisecond)
			}
		}
		p.close()
	}
}

// What any worker writes in one round is visible in the next.
func TestPoolRoundsAreBarriers(t *testing.T) {
	const items = 50
	for _, workers := range []int{2, 4} {
		p := newPool(workers)
		values := make([]int, items)
		for round := range 200 {
			p.run(items, func(_, item int) { values[item] = values[item] + 1 })
			total := 0
			p.run(1, func(int, int) {
				for _, v := range values {
					total += v
				}
			})
			if want := items * (round + 1); total != want {
				t.Fatalf("%d workers: total is %d after round %d, want %d", workers, total, round, want)
			}
		}
		p.close()
	}
}

// All workers take part, with the same range of items in every round: with one item per worker,
// each item waits for the others.
func TestPoolUsesAllWorkers(t *testing.T) {
	const workers = 3
	p := newPool(workers)
	defer p.close()
	for range 20 {
		var meeting sync.WaitGroup
		meeting.Add(workers)
		seen := make([]atomic.Int32, workers)
		var others atomic.Int32
		p.run(workers, func(worker, item int) {
			if item != worker {
				others.Add(1)
			}
			seen[worker].Add(1)
			meeting.Done()
			meeting.Wait()
		})
		for worker := range seen {
			if n := seen[worker].Load(); n != 1 {
				t.Fatalf("worker %d took %d of %d items that wait for each other", worker, n, workers)
			}
		}
		if n := others.Load(); n != 0 {
			t.Fatalf("%d of %d workers began with an item of another's part", n, workers)
		}
	}
}

func TestPoolDoesNotAllocate(t *testing.T) {
	p := newPool(2)
	defer p.close()
	var sum atomic.Int64
	work := func(_, item int) { sum.Add(int64(item)) }
	if n := testing.AllocsPerRun(20, func() { p.run(100, work) }); n > 0 {
		t.Errorf("a round allocates %v times", n)
	}
}

// Rounds start just as the workers fall asleep: a lost wake-up would hang.
func TestPoolWakes(t *testing.T) {
	p := newPool(2)
	defer p.close()
	var done atomic.Int64
	work := func(int, int) { done.Add(1) }
	const rounds = 4000
	for round := range rounds {
		pause := time.Duration(round%400) * 100 * time.Nanosecond
		for start := time.Now(); time.Since(start) < pause; {
			continue
		}
		p.run(2, work)
	}
	if n := done.Load(); n != 2*rounds {
		t.Errorf("%d items are done, want %d", n, 2*rounds)
	}
}

func BenchmarkPoolRound(b *testing.B) {
	p := newPool(2)
	defer p.close()
	work := func(int, int) {}
	for b.Loop() {
		p.run(8, work)
	}
}
