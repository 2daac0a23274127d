package cuda

import (
	"encoding/binary"
	"slices"
	"unsafe"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/tensor"
)

const arenas = int(tensor.Scratch) + 1

// stride divides the distance from one chain's memory to the next one's, in bytes: no two chains
// share a cache line.
const stride = 256

// part is a schedule with some of its chains in one GPU's memory.
type part struct {
	*gpu
	first, chains int // of the runner's chains
	launches      []tensor.Launch
	calls         []start     // of a step in a run, in which launches may do others' work
	own           [][]start   // of each launch by itself: its own work, left where the schedule says
	bytes         [arenas]int // of one copy of each arena
	memory        [arenas]address
	stride        [arenas]uint64
	keeps         bool
	kept          address // what Keep remembered of the chains' memory
	one, many     handle  // a step, and several, as executable CUDA graphs
	synchronous   bool
	inLine        bool // in CUDA graphs each call follows the one before it, whatever their data
	ahead         ahead
}

// start is a call whose kernel has been found.
type start struct {
	call
	function handle
}

// load takes memory for some chains of a schedule.
func (g *gpu) load(s tensor.Workload, first, chains int, o Options) (*part, error) {
	p := &part{gpu: g, first: first, chains: chains, launches: s.Launches, keeps: s.Keeps, inLine: o.inLine}
	p.synchronous = o.Synchronous || g.graphs == "slow"
	err := g.do(func() error {
		if err := p.plan(s, o.Precision); err != nil {
			return err
		}
		if err := p.checkPlaces(); err != nil {
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

// moreScratch limits the extra scratch memory with which a run's launches are kept apart to
// 1/moreScratch of what launches by themselves need.
const moreScratch = 8

// plan makes the launches' calls and finds their kernels, and the sizes of the arenas.
func (p *part) plan(s tensor.Workload, precision Precision) error {
	place := placement{
		precision: precision, multiprocessors: p.Multiprocessors, capability: p.capability(), chains: p.chains, shared: p.shared,
		groups: p.groups, unpacked: !p.packing, windowless: !p.windows,
	}
	p.bytes = s.Bytes
	scratch := &p.bytes[tensor.Scratch]
	calls, alone, err := stepCalls(s.Launches, &place)
	if err != nil {
		return err
	}
	if p.calls, err = p.starts(calls); err != nil {
		return err
	}
	for i := range s.Launches {
		place.base, place.workspace = tensor.Align(s.Bytes[tensor.Scratch]), 0
		calls := alone[i](&place, &s.Launches[i])
		for k := range calls {
			calls[k].launch = i
		}
		starts, err := p.starts(calls)
		if err != nil {
			return err
		}
		p.own = append(p.own, starts)
		*scratch = max(*scratch, place.base+place.workspace)
	}
	*scratch = max(*scratch, layOut(p.all(), *scratch+*scratch/moreScratch))
	return nil
}

// starts finds the kernels of calls.
func (p *part) starts(calls []call) (starts []start, err error) {
	for _, c := range calls {
		f, err := p.function(c.symbol, c.shared, false)
		if e, known := p.sources[c.symbol].entry(c.symbol); err == nil && known {
			err = matches(e, c)
		}
		if err == nil {
			err = startable(c, p.chains)
		}
		if err != nil {
			return nil, named(err, &p.launches[c.launch])
		}
		starts = append(starts, start{c, f})
	}
	return starts, nil
}

// named says which launch an error is about.
func named(err error, l *tensor.Launch) error {
	return errors.Wrapf(err, "cuda: launch %s (%s)", l.Kernel, l.Label)
}

// all are the calls of a step.
func (p *part) all() []call {
	var all []call
	for _, s := range p.calls {
		all = append(all, s.call)
	}
	return all
}

// checkPlaces refuses a call whose buffer does not lie in its arena: a kernel does not check its
// memory.
func (p *part) checkPlaces() error {
	for _, s := range append(slices.Concat(p.own...), p.calls...) {
		for j, argument := range s.arguments {
			b := argument.Buffer
			if b != nil && (b.Offset < 0 || b.Offset%tensor.Alignment != 0 || b.Offset+b.Bytes() > p.bytes[b.Arena]) {
				return named(errors.Errorf("argument %d of %s, %v, is outside its arena of %d bytes", j, s.symbol, b, p.bytes[b.Arena]), &p.launches[s.launch])
			}
		}
	}
	return nil
}

func (p *part) allocate() error {
	for arena := range arenas {
		copies := uint64(1)
		one := roundUp(p.bytes[arena])
		if tensor.Arena(arena) != tensor.Shared {
			p.stride[arena] = one
			copies = uint64(p.chains)
		}
		var err error
		if p.memory[arena], err = p.gpu.allocate(max(stride, copies*one)); err != nil {
			return p.explain(err)
		}
	}
	if p.keeps {
		var err error
		if p.kept, err = p.gpu.allocate(max(stride, p.chainBytes())); err != nil {
			return p.explain(err)
		}
	}
	return nil
}

// chainBytes is the size of all chains' own memory.
func (p *part) chainBytes() uint64 { return uint64(p.chains) * p.stride[tensor.Chain] }

// explain makes an *OutOfMemory of an allocation's error if that is what it is.
func (p *part) explain(err error) error {
	var failed *DriverError
	if errors.As(err, &failed) && failed.Code == int(outOfMemory) {
		return p.outOfMemory()
	}
	return err
}

func roundUp(bytes int) uint64 { return uint64(bytes+stride-1) / stride * stride }

// outOfMemory gives back what was already taken and reports how many chains fit.
func (p *part) outOfMemory() error {
	if err := p.free(); err != nil {
		return err
	}
	e := &OutOfMemory{
		GPU: p.gpu.String(), Chains: p.chains, Shared: roundUp(p.bytes[tensor.Shared]), PerChain: roundUp(p.bytes[tensor.Chain]) + roundUp(p.bytes[tensor.Scratch]),
	}
	if p.keeps {
		e.PerChain += roundUp(p.bytes[tensor.Chain])
	}
	var total uint64
	if err := p.check("cuMemGetInfo_v2", p.cuMemGetInfo_v2(&e.Free, &total)); err != nil {
		return err
	}
	e.Fit = min(e.fit(), e.Chains-1)
	return e
}

// free gives everything back.
func (p *part) free() error {
	r := &closing{g: p.gpu, wasLost: p.lost != nil}
	r.check("cuStreamSynchronize", p.cuStreamSynchronize(p.stream))
	for _, graph := range []*handle{&p.one, &p.many} {
		if *graph != 0 {
			r.check("cuGraphExecDestroy", p.cuGraphExecDestroy(*graph))
			*graph = 0
		}
	}
	if memory := p.ahead.memory; memory != nil {
		p.ahead = ahead{}
		r.check("cuMemFreeHost", p.cuMemFreeHost(memory))
	}
	for _, memory := range []*address{&p.memory[tensor.Shared], &p.memory[tensor.Chain], &p.memory[tensor.Scratch], &p.kept} {
		if *memory != 0 {
			r.check("cuMemFree_v2", p.cuMemFree_v2(*memory))
			*memory = 0
		}
	}
	return r.first
}

// run makes that many steps of all chains and waits for the end.
func (p *part) run(steps int) error {
	return p.do(func() error {
		p.ahead.fresh = false
		if p.synchronous {
			return p.runSlowly(steps)
		}
		start := p.startGraphs
		if p.graphs == "off" {
			start = p.startCalls
		}
		if err := start(steps); err != nil {
			return err
		}
		if err := p.readAhead(); err != nil {
			return err
		}
		err := p.synchronize()
		p.ahead.fresh = p.ahead.bytes > 0 && err == nil
		return errors.Wrap(err, "cuda: a launch of the run, which Options.Synchronous or "+GraphsVariable+"=slow would name")
	})
}

// startGraphs starts that many steps as CUDA graphs, and does not wait.
func (p *part) startGraphs(steps int) error {
	if together := p.together(); together > 1 {
		for ; steps >= together; steps -= together {
			if err := p.replay(&p.many, together); err != nil {
				return err
			}
		}
	}
	for ; steps > 0; steps-- {
		if err := p.replay(&p.one, 1); err != nil {
			return err
		}
	}
	return nil
}

// startCalls starts the calls of that many steps one by one, and does not wait.
func (p *part) startCalls(steps int) error {
	for range steps {
		if err := p.launchAll(p.calls, 0, p.chains); err != nil {
			return err
		}
	}
	return nil
}

// runSlowly waits after each launch, so that an error is that launch's.
func (p *part) runSlowly(steps int) error {
	for range steps {
		for i := range p.calls {
			if err := p.launchAlone(p.calls[i:i+1], 0, p.chains); err != nil {
				return err
			}
		}
	}
	return p.synchronize()
}

// launchAlone starts calls of a launch for some of the part's chains, and waits.
func (p *part) launchAlone(starts []start, chain, chains int) error {
	p.ahead.fresh = false
	if err := p.launchAll(starts, chain, chains); err != nil {
		return err
	}
	err := p.synchronize()
	if err != nil && len(starts) > 0 {
		return named(err, &p.launches[starts[0].launch])
	}
	return err
}

// launchAll starts calls one by one for some of the part's chains, and does not wait.
func (p *part) launchAll(starts []start, chain, chains int) error {
	for _, s := range starts {
		n := p.node(s, chain, chains)
		code := p.cuLaunchKernel(n.function, n.grid, n.block, n.shared, p.stream, n.parameters)
		if err := p.check("cuLaunchKernel", code); err != nil {
			return p.describe(err, s, n)
		}
	}
	return nil
}

// describe says which call of which launch an error is about.
func (p *part) describe(err error, s start, n kernelNode) error {
	err = errors.Wrapf(err, "%s, %v blocks of %d threads, %d bytes of shared memory", s.symbol, n.grid, s.threads, s.shared)
	return named(err, &p.launches[s.launch])
}

// node is a call as the driver takes it, for some of the part's chains.
func (p *part) node(s start, chain, chains int) kernelNode {
	values, places := p.parameters(s.call, chain)
	pointers := make([]unsafe.Pointer, len(places)+1)
	for j, place := range places {
		pointers[j] = unsafe.Pointer(&values[place])
	}
	return kernelNode{
		function: s.function, grid: [3]uint32{uint32(s.blocks[0]), uint32(max(1, s.blocks[1])), uint32(chains)},
		block: [3]uint32{uint32(s.threads), 1, 1}, shared: uint32(s.shared), parameters: &pointers[0],
	}
}

// parameters are the values that a kernel takes, as seen by the chains from chain on, and where
// each begins.
func (p *part) parameters(c call, chain int) (values []byte, places []int) {
	value := func(a tensor.Argument) (low, high uint64) {
		b := a.Buffer
		if b == nil {
			return a.Bits, 0
		}
		high = p.stride[b.Arena]
		return uint64(p.memory[b.Arena]) + uint64(b.Offset) + uint64(chain)*high, high
	}
	if c.ends != nil {
		return rowsParameter(c, value), []int{0}
	}
	values = make([]byte, 0, 16*len(c.arguments))
	for _, a := range c.arguments {
		places = append(places, len(values))
		low, high := value(a)
		values = binary.NativeEndian.AppendUint64(values, low)
		values = binary.NativeEndian.AppendUint64(values, high)
	}
	return values, places
}
