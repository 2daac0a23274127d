package tensor

import (
	"fmt"
	"math"
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/pkg/errors"
)

// Host is the device that runs on the CPU. It owns a pool of threads for its whole life and divides
// the work in one of two ways:
//
//   - With at least as many chains as threads, each thread runs several steps of one chain and
//     then takes another chain. Threads do not synchronize within a step.
//   - With fewer chains than threads, chains run one after another, and all threads share the
//     tiles of each launch.
//
// For example, 8 chains on 4 threads run as 4 chains at a time; 1 chain on 4 threads runs each
// convolution on all 4. If chains share an operand of a product, a thread runs a group of them
// instead of one, launch by launch, and reads the operand once for all, see [Joint]. If the operand
// is large, and all chains form one group with no fewer chains than threads, all threads run this
// group. They share the tiles of launches that compute all chains at once; in the other launches
// each runs some of the chains.
type Host struct {
	mu   sync.Mutex // held while a workload uses the threads
	pool *pool
}

var _ Device = (*Host)(nil)

// NewHost starts a host device with the given number of threads, or with GOMAXPROCS threads if
// threads is 0 or negative.
func NewHost(threads int) *Host {
	if threads <= 0 {
		threads = runtime.GOMAXPROCS(0)
	}
	return &Host{pool: newPool(threads)}
}

// Name implements Device.
func (h *Host) Name() string { return fmt.Sprintf("cpu (%d threads)", h.pool.workers) }

// Close implements Device: it ends the threads. Closing a closed host does nothing.
func (h *Host) Close() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.pool.closed.Load() {
		h.pool.close()
	}
	return nil
}

// hostRunner is a workload in the host's memory.
type hostRunner struct {
	division
	host         *Host
	launches     []Launch
	shared       []byte
	chains       [][]byte
	snapshot     [][]byte // the chains' memory at the last Keep
	scratch      [][]byte // one per chain of a group, for each worker that runs its own group
	workspace    [][]byte // one per such worker
	preparedArgs [][]byte // workspaces with prepared arguments: one per chain, and one that the chains share
	private      [][]byte // one per worker: memory of a single tile
	local        [][]byte // one per worker: intermediates of a fused stage
	args         []Args   // one per worker

	sharedReady bool   // whether the arguments that chains share are prepared
	ready       []bool // whether a chain's own ones are

	remaining []remaining  // per group, when workers run whole chains
	claimed   atomic.Int64 // groups claimed so far by a worker that runs them to the end
	phase     *Phase       // the phase whose tiles the workers are running
	stage     *fusedStage  // the stage whose items the workers are running
	segment   []fusedStage // the stages that the workers are running, chain by chain
	closed    bool

	memory memory // of all of the above; valid while the runner is reachable

	// What the pool runs: made once by Load, so that Run does not allocate closures.
	groupWork, chainWork, tileWork, itemWork func(worker, item int)
}

// division is how a workload's launches and chains are divided among the workers.
type division struct {
	stages   []fusedStage
	offsets  []int // of each launch's workspace; within a stage they do not overlap
	groups   []chainGroup
	together int  // the most chains of a group
	lockstep bool // whether all workers run the only group
	prepared preparations
}

// hostLayout is the division of a workload, and the sizes of the memory that is not in the arenas.
type hostLayout struct {
	division
	slots, scratch            int // copies of the workspace and of Scratch
	workspace, private, local int // bytes of each copy
}

// layout plans the memory of a workload on the host's threads.
func (h *Host) layout(w Workload) hostLayout {
	workers := h.pool.workers
	l := hostLayout{slots: 1, division: division{prepared: planPreparations(w)}}
	if w.Chains >= workers {
		l.slots, workers = workers, 1 // each runs whole chains
	}
	l.lockstep = l.slots > 1 && inLockstep(w.Launches, w.Chains)
	if l.lockstep {
		l.groups = groupChains(w.Launches, w.Chains, 1)
	} else {
		l.groups = groupChains(w.Launches, w.Chains, l.slots)
	}
	for _, g := range l.groups {
		l.together = max(l.together, g.end-g.first)
		for i := range g.joint {
			l.workspace = max(l.workspace, Align(g.joint[i].Workspace))
			l.private = max(l.private, g.joint[i].Private)
		}
	}
	l.scratch = l.together
	if !l.lockstep {
		l.scratch *= l.slots
	}
	l.stages, l.offsets = fuseLaunches(w.Launches, workers), make([]int, len(w.Launches))
	for _, s := range l.stages {
		end := 0
		l.local = max(l.local, s.localBytes)
		for i := s.from; i < s.to; i++ {
			l.private = max(l.private, w.Launches[i].Host.Private)
			if l.prepared.offsets[i] >= 0 {
				continue
			}
			l.offsets[i] = end
			end += Align(w.Launches[i].Host.Workspace)
		}
		l.workspace = max(l.workspace, end)
	}
	return l
}

// Size implements Sizer.
func (h *Host) Size(w Workload) (Footprint, error) {
	l := h.layout(w)
	copies := w.Chains
	if w.Keeps {
		copies *= 2
	}
	shared, chains := Align(w.Bytes[Shared])+l.prepared.bytes[Shared], copies*Align(w.Bytes[Chain])+w.Chains*l.prepared.bytes[Chain]
	return Footprint{Host: shared + chains + l.scratch*Align(w.Bytes[Scratch]) + l.slots*Align(l.workspace) +
		h.pool.workers*(Align(l.private)+Align(l.local))}, nil
}

// Free implements Sizer. The host device has no memory of its own.
func (h *Host) Free() (bytes int, err error) { return math.MaxInt, nil }

// Load implements Device.
func (h *Host) Load(w Workload) (Runner, error) {
	if w.Chains < 1 {
		return nil, errors.Errorf("tensor: host: Chains must be at least 1, got %d", w.Chains)
	}
	if h.pool.closed.Load() {
		return nil, errors.New("tensor: host: Load called after Close")
	}
	if err := checkBounds(w); err != nil {
		return nil, err
	}
	l := h.layout(w)
	r := &hostRunner{
		division:  l.division,
		host:      h,
		launches:  w.Launches,
		args:      make([]Args, h.pool.workers),
		remaining: make([]remaining, len(l.groups)),
		ready:     make([]bool, w.Chains),
	}
	r.memory = newMemory(r)
	r.shared = r.memory.bytes(w.Bytes[Shared])
	r.chains = r.memory.slices(w.Chains, w.Bytes[Chain])
	r.scratch = r.memory.slices(l.scratch, w.Bytes[Scratch])
	r.workspace = r.memory.slices(l.slots, l.workspace)
	r.private = r.memory.slices(h.pool.workers, l.private)
	r.local = r.memory.slices(h.pool.workers, l.local)
	r.preparedArgs = append(r.memory.slices(w.Chains, l.prepared.bytes[Chain]), r.memory.bytes(l.prepared.bytes[Shared]))
	if w.Keeps {
		r.snapshot = r.memory.slices(w.Chains, w.Bytes[Chain])
	}
	if err := r.memory.err(h.Name()); err != nil {
		r.Close()
		return nil, err
	}
	for worker := range r.args {
		r.args[worker].group = make([][arenas][]byte, 0, l.together)
	}
	r.groupWork, r.chainWork = r.runGroups, r.runSegment
	r.tileWork = func(worker, tile int) { r.phase.Run(&r.args[worker], tile) }
	r.itemWork = func(worker, item int) { r.runItem(&r.args[worker], 0, r.stage, item) }
	return r, nil
}

// checkBounds returns an error if a launch has a buffer outside its arena, or more tiles than the
// pool can run in a round. Kernels do not check their memory accesses, so this is the only barrier
// between a wrong memory plan and silent corruption.
func checkBounds(w Workload) error {
	for i := range w.Launches {
		for _, phase := range w.Launches[i].Host.Phases {
			if phase.Tiles < 1 || phase.Tiles > maxItems {
				return errors.Errorf("tensor: launch %s (%s): tiles must be 1 to %d, got %d: its tensors are too large",
					w.Launches[i].Kernel, w.Launches[i].Label, maxItems, phase.Tiles)
			}
		}
		for j, argument := range w.Launches[i].Arguments {
			b := argument.Buffer
			if b != nil && (b.Offset < 0 || b.Offset%Alignment != 0 || b.Offset+b.Bytes() > w.Bytes[b.Arena]) {
				return errors.Errorf("tensor: launch %s (%s): argument %d, %v, is outside its arena of %d bytes",
					w.Launches[i].Kernel, w.Launches[i].Label, j, b, w.Bytes[b.Arena])
			}
		}
	}
	return nil
}

// Run implements Runner.
func (r *hostRunner) Run(steps int) error {
	defer runtime.KeepAlive(r)
	r.host.mu.Lock()
	defer r.host.mu.Unlock()
	if r.closed || r.host.pool.closed.Load() {
		return errors.New("tensor: host: Run called after Close")
	}
	if steps > 0 {
		r.prepareShared()
	}
	if r.lockstep {
		for range steps {
			r.stepTogether(&r.groups[0])
		}
		return nil
	}
	// A single worker does the same work below without claiming groups.
	if workers := r.host.pool.workers; workers > 1 && len(r.chains) >= workers {
		for group := range r.remaining {
			r.remaining[group].steps.Store(int32(steps))
		}
		r.claimed.Store(0)
		r.host.pool.run(workers, r.groupWork)
		return nil
	}
	for i := range r.groups {
		for range steps {
			for s := range r.stages {
				r.parallelStage(&r.stages[s], &r.groups[i])
			}
			r.setReady(&r.groups[i])
		}
	}
	return nil
}

// parallelStage runs a stage of a group's chains on all workers.
func (r *hostRunner) parallelStage(s *fusedStage, g *chainGroup) {
	if joint := g.kernel(s.from); joint != nil {
		for w := range r.args {
			r.bindGroup(&r.args[w], w, 0, g)
		}
		r.parallelPhases(s.from, joint.Phases)
		return
	}
	for chain := g.first; chain < g.end; chain++ {
		for w := range r.args {
			r.bindChain(&r.args[w], w, chain-g.first, chain)
		}
		if s.tiles == nil {
			r.parallelPhases(s.from, r.phases(s.from, chain, len(r.launches[s.from].Host.Phases)))
			continue
		}
		for i := s.from; i < s.to; i++ {
			r.parallelPhases(i, r.phases(i, chain, r.launches[i].Host.RowTile.Phase))
		}
		r.stage = s
		r.host.pool.run(len(s.items)-1, r.itemWork)
		for i := s.from; i < s.to; i++ {
			r.parallelPhases(i, r.launches[i].Host.epilogue())
		}
	}
}

// parallelPhases runs phases of a launch on all workers, with a barrier after each.
func (r *hostRunner) parallelPhases(i int, phases []Phase) {
	if len(phases) == 0 {
		return
	}
	for w := range r.args {
		r.bindLaunch(&r.args[w], 0, i)
	}
	for i := range phases {
		r.phase = &phases[i]
		r.host.pool.run(r.phase.Tiles, r.tileWork)
	}
}

// bindLaunch points a worker's arguments at a launch and at the launch's part of a slot of the
// workspace.
func (r *hostRunner) bindLaunch(a *Args, slot, launch int) {
	a.launch = &r.launches[launch]
	if offset := r.prepared.offsets[launch]; offset >= 0 {
		owner := len(r.chains) // the last one is shared
		if r.prepared.arenas[launch] == Chain {
			owner = a.chain
		}
		a.workspace = r.preparedArgs[owner][offset:]
		return
	}
	a.workspace = r.workspace[slot][r.offsets[launch]:]
}

// bindChain points a worker's arguments at a chain and at the scratch memory of a slot.
func (r *hostRunner) bindChain(a *Args, worker, slot, chain int) {
	a.base = [arenas][]byte{Shared: r.shared, Chain: r.chains[chain], Scratch: r.scratch[slot]}
	a.chain, a.private, a.local = chain, r.private[worker], r.local[worker]
}

// Step implements Runner.
func (r *hostRunner) Step(chain int, visit func(launch int) error) error {
	defer runtime.KeepAlive(r)
	r.host.mu.Lock()
	defer r.host.mu.Unlock()
	if r.closed || r.host.pool.closed.Load() {
		return errors.New("tensor: host: Step called after Close")
	}
	if chain < 0 || chain >= len(r.chains) {
		return errors.Errorf("tensor: host: Step: chain must be in [0, %d), got %d", len(r.chains), chain)
	}
	for w := range r.args {
		r.bindChain(&r.args[w], w, 0, chain)
	}
	for i := range r.launches {
		r.parallelPhases(i, r.launches[i].Host.Phases)
		if err := visit(i); err != nil {
			return err
		}
	}
	return nil
}

// Read implements Runner.
func (r *hostRunner) Read(b *Buffer, chain, first int, dst []byte) error {
	src, err := r.region(b, chain, first, len(dst))
	copy(dst, src)
	runtime.KeepAlive(r)
	return err
}

// Write implements Runner.
func (r *hostRunner) Write(b *Buffer, chain, first int, src []byte) error {
	dst, err := r.region(b, chain, first, len(src))
	if err == nil {
		copy(dst, src)
		r.changed(b, chain)
	}
	runtime.KeepAlive(r)
	return err
}

// region returns the memory of the bytes from element first of a chain's copy of b. It returns an
// error if they are not all within the buffer.
func (r *hostRunner) region(b *Buffer, chain, first, bytes int) ([]byte, error) {
	if r.closed {
		return nil, errors.New("tensor: host: memory accessed after Close")
	}
	if chain < 0 || chain >= len(r.chains) {
		return nil, errors.Errorf("tensor: host: chain must be in [0, %d), got %d", len(r.chains), chain)
	}
	from := first * b.DType.Size()
	if first < 0 || first > b.Elements || from+bytes > b.Bytes() {
		return nil, errors.Errorf("tensor: host: bytes [%d, %d) are outside %v, which has %d bytes", from, from+bytes, b, b.Bytes())
	}
	arena := [arenas][]byte{Shared: r.shared, Chain: r.chains[chain], Scratch: r.scratch[0]}[b.Arena]
	return arena[b.Offset+from : b.Offset+from+bytes], nil
}

// Keep implements Runner.
func (r *hostRunner) Keep() error { return r.copyChains(r.snapshot, r.chains) }

// Return implements Runner.
func (r *hostRunner) Return() error {
	clear(r.ready)
	return r.copyChains(r.chains, r.snapshot)
}

func (r *hostRunner) copyChains(to, from [][]byte) error {
	if r.closed {
		return errors.New("tensor: host: runner used after Close")
	}
	if r.snapshot == nil {
		return errors.New("tensor: host: Keep and Return need a workload with Keeps set")
	}
	for chain := range from {
		copy(to[chain], from[chain])
	}
	runtime.KeepAlive(r)
	return nil
}

// Close implements Runner. It waits until a Run in another goroutine has ended.
func (r *hostRunner) Close() error {
	defer runtime.KeepAlive(r) // its memory is freed once, here
	r.host.mu.Lock()
	defer r.host.mu.Unlock()
	r.closed = true
	r.shared, r.chains, r.snapshot, r.scratch, r.workspace, r.preparedArgs, r.private, r.local = nil, nil, nil, nil, nil, nil, nil, nil
	for i := range r.args {
		r.args[i] = Args{}
	}
	r.memory.free()
	return nil
}
