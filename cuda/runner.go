package cuda

import (
	"cmp"
	"sync"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/tensor"
)

// runner is a loaded workload, whose chains are split over GPUs.
type runner struct {
	shards []*shard // in the order of their chains
	chains int
}

// Run implements tensor.Runner. Several GPUs run at the same time, each driven by its own
// goroutine.
func (r *runner) Run(steps int) error {
	if steps < 0 {
		return errors.Errorf("cuda: Run: steps must be at least 0, got %d", steps)
	}
	if len(r.shards) == 1 {
		return r.shards[0].run(steps)
	}
	failed := make([]error, len(r.shards))
	var wait sync.WaitGroup
	for i, p := range r.shards {
		wait.Go(func() { failed[i] = p.run(steps) })
	}
	wait.Wait()
	return cmp.Or(failed...)
}

// Step implements tensor.Runner. It runs the workload's launches one by one for one chain, each by
// its separate calls instead of the fused calls of a step.
func (r *runner) Step(chain int, visit func(launch int) error) error {
	p, err := r.shardOf(chain)
	if err != nil {
		return err
	}
	for i := range p.launches {
		if err := p.do(func() error { return p.launchAndWait(p.separate[i], chain-p.first, 1) }); err != nil {
			return err
		}
		if err := visit(i); err != nil {
			return err
		}
	}
	return nil
}

// Read implements tensor.Runner. Bytes that are read from all chains after each run come from
// pinned memory (readback.go).
func (r *runner) Read(b *tensor.Buffer, chain, first int, dst []byte) error {
	p, at, err := r.locate(b, chain, first, len(dst))
	if err != nil {
		return err
	}
	return p.do(func() error {
		from := p.address(b, chain) + at
		if b.Arena != tensor.Chain {
			return p.read(from, dst)
		}
		own := chain - p.first
		base := from - address(own)*address(p.stride[tensor.Chain])
		if p.cached(base, own, dst) {
			return nil
		}
		if err := p.read(from, dst); err != nil {
			return err
		}
		return p.observeRead(base, own, len(dst))
	})
}

// Write implements tensor.Runner. It does not wait: if the copy fails, the next Run, Step or Read
// returns the error. Memory that all chains share is written on every GPU.
func (r *runner) Write(b *tensor.Buffer, chain, first int, src []byte) error {
	p, at, err := r.locate(b, chain, first, len(src))
	if err != nil {
		return err
	}
	parts := []*shard{p}
	if b.Arena == tensor.Shared {
		parts = r.shards
	}
	for _, p := range parts {
		err := p.do(func() error {
			p.readback.valid = false
			return p.write(p.address(b, chain)+at, src)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// Keep implements tensor.Runner. Neither Keep nor Return waits.
func (r *runner) Keep() error {
	return r.eachSnapshot((*shard).keep)
}

// Return implements tensor.Runner.
func (r *runner) Return() error {
	return r.eachSnapshot((*shard).restore)
}

// eachSnapshot copies the Chain arena of every shard to its snapshot or back.
func (r *runner) eachSnapshot(copyChains func(p *shard) error) error {
	if !r.shards[0].snapshots {
		return errors.New("cuda: Keep and Return need a workload with Keeps")
	}
	for _, p := range r.shards {
		err := p.do(func() error {
			p.readback.valid = false
			return copyChains(p)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// shardOf returns the shard that has a chain.
func (r *runner) shardOf(chain int) (*shard, error) {
	for _, p := range r.shards {
		if chain >= p.first && chain < p.first+p.chains {
			return p, nil
		}
	}
	return nil, errors.Errorf("cuda: chain must be in [0, %[2]d), got %[1]d", chain, r.chains)
}

// locate checks a transfer, and returns its shard and its offset in the buffer, in bytes.
func (r *runner) locate(b *tensor.Buffer, chain, first, bytes int) (*shard, address, error) {
	p, err := r.shardOf(chain)
	if err != nil {
		return nil, 0, err
	}
	from := first * b.DType.Size()
	if first < 0 || first > b.Elements || from+bytes > b.Bytes() || b.Offset < 0 || b.Offset+b.Bytes() > p.bytes[b.Arena] {
		return nil, 0, errors.Errorf("cuda: bytes %d to %d are outside %v, which has %d", from, from+bytes, b, b.Bytes())
	}
	return p, address(from), nil
}

// Close implements tensor.Runner. It waits until calls in other goroutines have ended. A second
// call does nothing.
func (r *runner) Close() error {
	var failed error
	for _, p := range r.shards {
		failed = cmp.Or(failed, p.close())
	}
	return failed
}
