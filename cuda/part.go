package cuda

import (
	"encoding/binary"
	"unsafe"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/tensor"
)

const arenas = int(tensor.Scratch) + 1

// stride is what the distance from one chain's memory to the next one's is a multiple of, in bytes: no two chains share a line of the cache.
const stride = 256

// The most launches that are captured into one CUDA graph, and the most steps.
const (
	graphLaunches = 1024
	graphSteps    = 16
)

// part is a schedule with some of its chains in one GPU's memory.
type part struct {
	*gpu
	first, chains int // of the runner's chains
	launches      []tensor.Launch
	calls         [][]start   // of each launch
	number        int         // of all calls
	bytes         [arenas]int // of one copy of each arena
	memory        [arenas]address
	stride        [arenas]uint64
	keeps         bool
	kept          address // what Keep remembered of the chains' memory
	one, many     handle  // a step, and several, as executable CUDA graphs
	synchronous   bool
	ahead         ahead
}

// start is a call whose kernel has been found.
type start struct {
	call
	function handle
}

// load takes memory for some chains of a schedule.
func (g *gpu) load(s tensor.Schedule, first, chains int, precision Precision, synchronous bool) (*part, error) {
	p := &part{gpu: g, first: first, chains: chains, launches: s.Launches, keeps: s.Keeps, synchronous: synchronous}
	err := g.do(func() error {
		workspace, err := p.plan(s, precision)
		if err != nil {
			return err
		}
		bytes := s.Bytes
		bytes[tensor.Scratch] = tensor.Align(bytes[tensor.Scratch]) + workspace
		p.bytes = bytes
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

// plan makes the launches' calls and finds their kernels. It returns the bytes of workspace that a chain needs.
func (p *part) plan(s tensor.Schedule, precision Precision) (int, error) {
	workspace := 0
	place := &placement{
		precision: precision, multiprocessors: p.Multiprocessors, capability: p.capability(), chains: p.chains, base: tensor.Align(s.Bytes[tensor.Scratch]),
	}
	for i := range s.Launches {
		launch := &s.Launches[i]
		place.workspace = 0
		var starts []start
		for _, c := range geometryOf(launch.Kernel)(place, launch) {
			f, err := p.function(c.symbol, c.shared)
			if e, known := p.sources[c.symbol].entry(c.symbol); err == nil && known {
				err = matches(e, c)
			}
			if err == nil {
				err = startable(c, p.chains)
			}
			if err != nil {
				return 0, errors.Wrapf(err, "cuda: launch %s (%s)", launch.Kernel, launch.Label)
			}
			starts = append(starts, start{c, f})
		}
		p.calls = append(p.calls, starts)
		p.number += len(starts)
		workspace = max(workspace, place.workspace)
	}
	return workspace, nil
}

// checkPlaces refuses a call whose buffer does not lie in its arena: a kernel does not check its memory.
func (p *part) checkPlaces() error {
	for i, starts := range p.calls {
		for _, s := range starts {
			for j, argument := range s.arguments {
				b := argument.Buffer
				if b != nil && (b.Offset < 0 || b.Offset%tensor.Alignment != 0 || b.Offset+b.Bytes() > p.bytes[b.Arena]) {
					return errors.Errorf("cuda: launch %s (%s): argument %d of %s, %v, is outside its arena of %d bytes",
						p.launches[i].Kernel, p.launches[i].Label, j, s.symbol, b, p.bytes[b.Arena])
				}
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

// outOfMemory gives back what there is already and tells how many chains fit.
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

// run makes steps steps of all chains and waits for the end.
func (p *part) run(steps int) error {
	return p.do(func() error {
		p.ahead.fresh = false
		if p.synchronous {
			return p.runSlowly(steps)
		}
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
		if err := p.readAhead(); err != nil {
			return err
		}
		err := p.synchronize()
		p.ahead.fresh = p.ahead.bytes > 0 && err == nil
		return errors.Wrap(err, "cuda: a launch of the run, which Options.Synchronous would name")
	})
}

// together is how many steps are captured in one CUDA graph.
func (p *part) together() int { return min(graphSteps, graphLaunches/max(1, p.number)) }

// replay starts steps steps as one CUDA graph, which it makes the first time.
func (p *part) replay(graph *handle, steps int) error {
	if *graph == 0 {
		var err error
		if *graph, err = p.capture(steps); err != nil {
			return err
		}
	}
	return p.check("cuGraphLaunch", p.cuGraphLaunch(*graph, p.stream))
}

// capture records the calls of steps steps into an executable CUDA graph.
func (p *part) capture(steps int) (handle, error) {
	if err := p.check("cuStreamBeginCapture_v2", p.cuStreamBeginCapture_v2(p.stream, captureThreadLocal)); err != nil {
		return 0, err
	}
	var failed error
	for range steps {
		for i := range p.calls {
			if failed == nil {
				failed = p.launch(i, 0, p.chains)
			}
		}
	}
	var graph, executable handle
	if err := p.check("cuStreamEndCapture", p.cuStreamEndCapture(p.stream, &graph)); failed == nil {
		failed = err
	}
	if failed == nil {
		err := p.check("cuGraphInstantiateWithFlags", p.cuGraphInstantiateWithFlags(&executable, graph, 0))
		failed = errors.Wrapf(err, "a CUDA graph of %d launches", steps*p.number)
	}
	if graph != 0 {
		failed = first(failed, p.check("cuGraphDestroy", p.cuGraphDestroy(graph)))
	}
	if failed != nil && executable != 0 {
		failed = first(failed, p.check("cuGraphExecDestroy", p.cuGraphExecDestroy(executable)))
		executable = 0
	}
	return executable, failed
}

func first(a, b error) error {
	if a != nil {
		return a
	}
	return b
}

// runSlowly waits after each launch, so that an error is that launch's.
func (p *part) runSlowly(steps int) error {
	for range steps {
		for i := range p.calls {
			if err := p.launchAlone(i, 0, p.chains); err != nil {
				return err
			}
		}
	}
	return p.synchronize()
}

func (p *part) launchAlone(i, chain, chains int) error {
	p.ahead.fresh = false
	if err := p.launch(i, chain, chains); err != nil {
		return err
	}
	return errors.Wrapf(p.synchronize(), "cuda: launch %s (%s)", p.launches[i].Kernel, p.launches[i].Label)
}

// launch starts the calls of a launch for some of the part's chains.
func (p *part) launch(i, chain, chains int) error {
	for _, s := range p.calls[i] {
		values, places := p.parameters(s.arguments, chain)
		pointers := make([]unsafe.Pointer, len(places)+1)
		for j, place := range places {
			pointers[j] = unsafe.Pointer(&values[place])
		}
		grid := [3]uint32{uint32(s.blocks[0]), uint32(max(1, s.blocks[1])), uint32(chains)}
		code := p.cuLaunchKernel(s.function, grid, [3]uint32{uint32(s.threads), 1, 1}, uint32(s.shared), p.stream, &pointers[0])
		if err := p.check("cuLaunchKernel", code); err != nil {
			return errors.Wrapf(err, "cuda: launch %s (%s): %s, %v blocks of %d threads, %d bytes of shared memory",
				p.launches[i].Kernel, p.launches[i].Label, s.symbol, grid, s.threads, s.shared)
		}
	}
	return nil
}

// parameters are the values that a kernel takes, as the chains from chain on see them, and where each begins.
func (p *part) parameters(arguments []tensor.Argument, chain int) (values []byte, places []int) {
	values = make([]byte, 0, 16*len(arguments))
	for _, a := range arguments {
		places = append(places, len(values))
		low := a.Bits
		var high uint64
		if b := a.Buffer; b != nil {
			high = p.stride[b.Arena]
			low = uint64(p.memory[b.Arena]) + uint64(b.Offset) + uint64(chain)*high
		}
		values = binary.NativeEndian.AppendUint64(values, low)
		values = binary.NativeEndian.AppendUint64(values, high)
	}
	return values, places
}
