package cuda

import (
	"cmp"
	"slices"
	"unsafe"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/cuda/internal/plan"
	"github.com/pollen-ml/pollen/tensor"
)

const arenas = int(tensor.Scratch) + 1

// chainAlignment is the alignment, in bytes, of one chain's memory, so that no two chains share a
// cache line.
const chainAlignment = 256

// shard is a workload with some of its chains in one GPU's memory. A runner has a shard for each
// GPU.
type shard struct {
	*gpu
	first, chains int // the range of the runner's chains
	launches      []tensor.Launch
	step          []boundCall   // the calls of a step; some do the work of several launches
	ahead         *plan.Ahead   // which of them may run before the preceding step has ended, or nil
	next          boundCall     // the call that writes the header that these read
	separate      [][]boundCall // for each launch, the calls that compute only it

	// Arena a has bytes[a] bytes for each chain. Chain c's copy begins at memory[a] + c*stride[a];
	// the stride of the arena that all chains share is 0.
	bytes  [arenas]int
	memory [arenas]address
	stride [arenas]uint64

	closed    bool    // guarded by gpu.mu
	snapshots bool    // whether Keep may be called
	snapshot  address // the copy of the Chain arena that Keep made

	stepGraph, multiStepGraph handle // executable CUDA graphs of one step and of stepsPerGraph steps
	synchronous               bool   // wait after each call
	sequential                bool   // in CUDA graphs each call follows the one before it
	readback                  readback
}

// boundCall is a call with its kernel.
type boundCall struct {
	plan.Call
	function handle
}

// readback is memory of the Chain arena that is copied to the host at the end of each run, before
// the run's only synchronization.
//
// A session reads its metrics from all chains after each run. Reading them one by one costs a
// synchronization each. So once the same bytes have been read from chain 0, 1, and so on to the
// last, each run also copies them to pinned memory, which the next reads use. The copying ends
// after a run whose copy was not read.
type readback struct {
	memory unsafe.Pointer // pinned; chain c's bytes begin at c*bytes
	source address        // of chain 0
	bytes  int            // of each chain; 0 if nothing is read back
	valid  bool           // whether memory has the GPU's present bytes
	used   bool           // whether memory was read since the last run

	// The series of reads that may become a readback: candidateBytes from each chain, beginning
	// with chain 0's at the address candidate.
	candidate      address
	candidateBytes int
	nextChain      int // the chain whose read would continue the series, or -1
}

// load plans a workload, compiles its kernels, and allocates memory for some of its chains.
func (g *gpu) load(w tensor.Workload, first, chains int, o Options) (*shard, error) {
	p := &shard{gpu: g, first: first, chains: chains, launches: w.Launches, snapshots: w.Keeps, sequential: o.sequential}
	p.synchronous = o.Synchronous || g.graphs == "slow"
	err := g.do(func() error {
		if err := p.plan(w, o.Precision); err != nil {
			return err
		}
		if err := p.checkBounds(); err != nil {
			return err
		}
		if err := p.allocate(); err != nil {
			p.free()
			return err
		}
		g.loaded++
		return nil
	})
	return p, err
}

// plan plans the workload for the shard's chains, finds the kernels of all calls, and sets the
// sizes of the arenas. A plan for the shard's number of chains may choose other kernels than a plan
// for all chains, but gives the same bits.
func (p *shard) plan(w tensor.Workload, precision Precision) error {
	planned, err := plan.New(w, p.target(precision, p.chains))
	if err != nil {
		return err
	}
	p.bytes = w.Bytes
	p.bytes[tensor.Scratch] = planned.Scratch
	if p.step, err = p.bind(planned.Step); err != nil {
		return err
	}
	if planned.Ahead.Last >= 0 && p.features.ahead {
		next, err := p.bind([]plan.Call{planned.Ahead.Next})
		if err != nil {
			return err
		}
		p.ahead, p.next = planned.Ahead, next[0]
	}
	for _, calls := range planned.Separate {
		bound, err := p.bind(calls)
		if err != nil {
			return err
		}
		p.separate = append(p.separate, bound)
	}
	return nil
}

// bind finds the kernels of calls. It checks each call against its kernel and the GPU's limits.
func (p *shard) bind(calls []plan.Call) (bound []boundCall, err error) {
	for _, c := range calls {
		f, err := p.function(c.Symbol, c.Shared, false)
		if e, known := p.kernelFiles[c.Symbol].entry(c.Symbol); err == nil && known {
			err = checkSignature(e, c)
		}
		if err == nil {
			err = checkGrid(c, p.chains)
		}
		if err != nil {
			return nil, inLaunch(err, &p.launches[c.Launch])
		}
		bound = append(bound, boundCall{c, f})
	}
	return bound, nil
}

// inLaunch wraps an error with the launch that caused it.
func inLaunch(err error, l *tensor.Launch) error {
	return errors.Wrapf(err, "cuda: launch %s (%s)", l.Kernel, l.Label)
}

// stepCalls returns the calls of a step without their kernels.
func (p *shard) stepCalls() []plan.Call { return unbound(p.step) }

func unbound(calls []boundCall) (all []plan.Call) {
	for _, s := range calls {
		all = append(all, s.Call)
	}
	return all
}

// steps returns the calls of n consecutive steps, in an order that is valid. From the second step
// on, the calls that may run ahead read a copy of the header instead of the header that the
// preceding step increments (plan.Ahead).
func (p *shard) steps(n int) (all []boundCall) {
	if p.ahead == nil || p.sequential {
		return slices.Repeat(p.step, n)
	}
	p.ahead.Steps(p.stepCalls(), n, func(c plan.Call, number int) {
		s := p.next
		if number >= 0 {
			s = boundCall{c, p.step[number].function}
		}
		all = append(all, s)
	})
	return all
}

// do runs work as gpu.do does. It returns an error if the shard is closed.
func (p *shard) do(work func() error) error {
	return p.gpu.do(func() error {
		if p.closed {
			return errors.New("cuda: a workload is used after Close")
		}
		return work()
	})
}

// address returns a buffer's address in one of the runner's chains.
func (p *shard) address(b *tensor.Buffer, chain int) address {
	return p.memory[b.Arena] + address(b.Offset) + address(uint64(chain-p.first)*p.stride[b.Arena])
}

// checkBounds returns an error if a buffer of a call is not inside its arena. Kernels do not check
// their addresses.
func (p *shard) checkBounds() error {
	for _, s := range append(slices.Concat(p.separate...), p.step...) {
		for j, argument := range s.Arguments {
			b := argument.Buffer
			if b != nil && (b.Offset < 0 || b.Offset%tensor.Alignment != 0 || b.Offset+b.Bytes() > p.bytes[b.Arena]) {
				err := errors.Errorf("argument %d of %s, %v, is outside its arena of %d bytes", j, s.Symbol, b, p.bytes[b.Arena])
				return inLaunch(err, &p.launches[s.Launch])
			}
		}
	}
	return nil
}

// allocate allocates zeroed memory for the arenas and the snapshot. Arenas that chains do not share
// have a copy for each chain.
func (p *shard) allocate() error {
	for arena := range arenas {
		copies := uint64(1)
		one := alignChain(p.bytes[arena])
		if tensor.Arena(arena) != tensor.Shared {
			p.stride[arena] = one
			copies = uint64(p.chains)
		}
		var err error
		if p.memory[arena], err = p.gpu.allocate(max(chainAlignment, copies*one)); err != nil {
			return p.asOutOfMemory(err)
		}
	}
	if p.snapshots {
		var err error
		if p.snapshot, err = p.gpu.allocate(max(chainAlignment, p.chainBytes())); err != nil {
			return p.asOutOfMemory(err)
		}
	}
	return nil
}

// chainBytes is the size of the Chain arena, all chains together.
func (p *shard) chainBytes() uint64 { return uint64(p.chains) * p.stride[tensor.Chain] }

// asOutOfMemory turns an allocation's error into an *OutOfMemory if the GPU has too little memory.
func (p *shard) asOutOfMemory(err error) error {
	var failed *DriverError
	if errors.As(err, &failed) && failed.Code == int(outOfMemory) {
		return p.outOfMemory()
	}
	return err
}

func alignChain(bytes int) uint64 {
	return uint64(bytes+chainAlignment-1) / chainAlignment * chainAlignment
}

// outOfMemory frees what was allocated and reports how many chains would fit.
func (p *shard) outOfMemory() error {
	if err := p.free(); err != nil {
		return err
	}
	e := &OutOfMemory{
		GPU: p.gpu.String(), Chains: p.chains, Shared: alignChain(p.bytes[tensor.Shared]),
		PerChain: alignChain(p.bytes[tensor.Chain]) + alignChain(p.bytes[tensor.Scratch]),
	}
	if p.snapshots {
		e.PerChain += alignChain(p.bytes[tensor.Chain])
	}
	var total uint64
	if err := p.check("cuMemGetInfo_v2", p.cuMemGetInfo_v2(&e.Free, &total)); err != nil {
		return err
	}
	e.Fit = min(e.maxChains(), e.Chains-1)
	return e
}

// keep copies the Chain arena to the snapshot.
func (p *shard) keep() error { return p.copyChains(p.snapshot, p.memory[tensor.Chain]) }

// restore copies the snapshot back.
func (p *shard) restore() error { return p.copyChains(p.memory[tensor.Chain], p.snapshot) }

func (p *shard) copyChains(to, from address) error {
	return p.check("cuMemcpyDtoDAsync_v2", p.cuMemcpyDtoDAsync_v2(to, from, p.chainBytes(), p.stream))
}

// close releases a shard's memory, even if the GPU is lost.
func (p *shard) close() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil
	}
	p.closed = true
	p.loaded--
	wasLost := p.lost != nil
	var failed error
	err := p.withContext(func() error {
		failed = p.free()
		return nil
	})
	if wasLost {
		return nil
	}
	return cmp.Or(failed, err)
}

// free releases the shard's memory and graphs.
func (p *shard) free() error {
	r := &releaser{g: p.gpu, wasLost: p.lost != nil}
	r.check("cuStreamSynchronize", p.cuStreamSynchronize(p.stream))
	for _, graph := range []*handle{&p.stepGraph, &p.multiStepGraph} {
		if *graph != 0 {
			r.check("cuGraphExecDestroy", p.cuGraphExecDestroy(*graph))
			*graph = 0
		}
	}
	if memory := p.readback.memory; memory != nil {
		p.readback = readback{}
		r.check("cuMemFreeHost", p.cuMemFreeHost(memory))
	}
	for _, memory := range []*address{&p.memory[tensor.Shared], &p.memory[tensor.Chain], &p.memory[tensor.Scratch], &p.snapshot} {
		if *memory != 0 {
			r.check("cuMemFree_v2", p.cuMemFree_v2(*memory))
			*memory = 0
		}
	}
	return r.first
}
