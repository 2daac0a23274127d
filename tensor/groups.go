package tensor

import "sync/atomic"

// chainGroup is the chains [first, end), which run together, launch by launch. joint holds, for
// each launch, the kernel that computes all of them at once; it is nil for a single chain.
type chainGroup struct {
	first, end int
	joint      []HostKernel
}

// kernel returns the kernel that computes a launch for the whole group, or nil if it is computed
// chain by chain.
func (g *chainGroup) kernel(launch int) *HostKernel {
	if g.joint == nil || g.joint[launch].Phases == nil {
		return nil
	}
	return &g.joint[launch]
}

// groupChains divides chains into groups of nearly equal size, for the given number of workers that
// run whole chains. Without a launch that computes several chains at once, each chain is a group.
func groupChains(launches []Launch, chains, workers int) []chainGroup {
	together := 1
	for i := range launches {
		together = max(together, launches[i].Host.Joint.Chains)
	}
	count := (chains + together - 1) / together
	count = min((count+workers-1)/workers*workers, chains) // the same number for each worker
	groups, joint := make([]chainGroup, count), map[int][]HostKernel{}
	for i := range groups {
		first, end := i*chains/count, (i+1)*chains/count
		size := end - first
		if size > 1 && joint[size] == nil {
			joint[size] = make([]HostKernel, len(launches))
			for n := range launches {
				if j := launches[n].Host.Joint; j.Chains > 1 {
					joint[size][n] = j.Kernel(size)
				}
			}
		}
		groups[i] = chainGroup{first, end, joint[size]}
	}
	return groups
}

// lockstepBytes is the smallest shared operand that is worth a barrier between all workers at every
// launch that reads it.
const lockstepBytes = 1 << 20

// inLockstep reports whether all chains are one group that is worth running on all workers.
func inLockstep(launches []Launch, chains int) bool {
	together, shared := 0, 0
	for i := range launches {
		if j := launches[i].Host.Joint; j.Chains > 1 {
			together, shared = max(together, j.Chains), max(shared, j.Bytes)
		}
	}
	return chains > 1 && chains <= together && shared >= lockstepBytes
}

// sharedGroups is the number of groups per worker, counted from the last, that workers run a few
// steps at a time. Each earlier group is run to the end by one worker, because finding the group
// with the most remaining steps means looking at every candidate.
const sharedGroups = 4

// timeSlice is the number of steps that a worker runs of a group before it takes another one. It is
// small, so that all workers finish at nearly the same time.
const timeSlice = 8

// remaining is the work that a group still has in a Run.
type remaining struct {
	taken atomic.Bool // whether a worker is running the group
	steps atomic.Int32
}

// runGroups is the work of one worker: it runs whole groups while more than sharedGroups per worker
// are left. Then it repeatedly runs a time slice of the group with the most remaining steps, until
// the only groups with steps left are being run by other workers.
func (r *hostRunner) runGroups(worker, _ int) {
	whole := max(0, len(r.groups)-sharedGroups*len(r.args))
	for group := int(r.claimed.Add(1)) - 1; group < whole; group = int(r.claimed.Add(1)) - 1 {
		for range r.remaining[group].steps.Load() {
			r.stepGroup(worker, &r.groups[group])
		}
	}
	for {
		next, most := -1, int32(0)
		for group := whole; group < len(r.remaining); group++ {
			if left := r.remaining[group].steps.Load(); left > most && !r.remaining[group].taken.Load() {
				next, most = group, left
			}
		}
		if next < 0 {
			return
		}
		if !r.remaining[next].taken.CompareAndSwap(false, true) {
			continue
		}
		// Another worker may have run the group's last steps since left was read above.
		left := r.remaining[next].steps.Load()
		steps := min(left, timeSlice)
		for range steps {
			r.stepGroup(worker, &r.groups[next])
		}
		r.remaining[next].steps.Store(left - steps)
		r.remaining[next].taken.Store(false)
	}
}

// stepGroup runs one step of a group's chains on one worker, each stage for all of them before the
// next.
func (r *hostRunner) stepGroup(worker int, g *chainGroup) {
	a := &r.args[worker]
	slot := worker * r.together // of the group's first chain in Scratch
	for i := range r.stages {
		s := &r.stages[i]
		if joint := g.kernel(s.from); joint != nil {
			r.bindGroup(a, worker, slot, g)
			r.runPhases(a, worker, s.from, joint.Phases)
			continue
		}
		for chain := g.first; chain < g.end; chain++ {
			if i == 0 || g.joint != nil { // otherwise it is still bound
				r.bindChain(a, worker, slot+chain-g.first, chain)
			}
			r.runStage(a, worker, s)
		}
	}
	r.setReady(g)
}

// setReady records that the arguments of a group's chains are prepared.
func (r *hostRunner) setReady(g *chainGroup) {
	for chain := g.first; chain < g.end; chain++ {
		r.ready[chain] = true
	}
}

// stepTogether runs one step of a group on all workers. They share the tiles of launches that
// compute the whole group. Between these, each runs some of the chains.
func (r *hostRunner) stepTogether(g *chainGroup) {
	for i := 0; i < len(r.stages); {
		if g.kernel(r.stages[i].from) != nil {
			r.parallelStage(&r.stages[i], g)
			i++
			continue
		}
		first := i
		for i < len(r.stages) && g.kernel(r.stages[i].from) == nil {
			i++
		}
		r.segment = r.stages[first:i]
		r.host.pool.run(g.end-g.first, r.chainWork)
	}
	r.setReady(g)
}

// runSegment runs a segment's stages of a chain on one worker.
func (r *hostRunner) runSegment(worker, chain int) {
	a := &r.args[worker]
	r.bindChain(a, worker, chain, chain)
	for i := range r.segment {
		r.runStage(a, worker, &r.segment[i])
	}
}

// runStage runs a stage of a chain on one worker.
func (r *hostRunner) runStage(a *Args, worker int, s *fusedStage) {
	if s.tiles == nil {
		r.runPhases(a, worker, s.from, r.phases(s.from, a.chain, len(r.launches[s.from].Host.Phases)))
		return
	}
	for i := s.from; i < s.to; i++ {
		r.runPhases(a, worker, i, r.phases(i, a.chain, r.launches[i].Host.RowTile.Phase))
	}
	for item := range len(s.items) - 1 {
		r.runItem(a, worker, s, item)
	}
	for i := s.from; i < s.to; i++ {
		r.runPhases(a, worker, i, r.launches[i].Host.epilogue())
	}
}

// runPhases runs phases of a launch on one worker.
func (r *hostRunner) runPhases(a *Args, slot, launch int, phases []Phase) {
	r.bindLaunch(a, slot, launch)
	for _, phase := range phases {
		for tile := range phase.Tiles {
			phase.Run(a, tile)
		}
	}
}

// runItem runs the row tiles of one item of a fused stage: for each tile, all launches of the
// stage.
func (r *hostRunner) runItem(a *Args, slot int, s *fusedStage, item int) {
	for n := s.items[item]; n < s.items[item+1]; n++ {
		for i := s.from; i < s.to; i++ {
			if s.blocks[i-s.from] > 0 {
				r.alternate(a, slot, s, i, s.tiles[n])
				i++
				continue
			}
			r.bindLaunch(a, slot, i)
			a.localOffsets = s.localOffsets[i-s.from]
			rows := s.ratios[i-s.from]
			r.launches[i].Host.RowTile.Handle(a, s.tiles[n]*rows, s.tiles[n+1]*rows)
			a.localOffsets = nil
		}
	}
}

// alternate runs launches i and i+1 of a stage for the only row of a tile.
func (r *hostRunner) alternate(a *Args, slot int, s *fusedStage, i, row int) {
	block := planeBlock{between: r.launches[i].Arguments[0].Buffer}
	for count := r.launches[i].Host.Planes.Count; block.lo < count; block.lo = block.hi {
		block.hi = min(block.lo+s.blocks[i-s.from], count)
		for j := i; j <= i+1; j++ {
			r.bindLaunch(a, slot, j)
			host := &r.launches[j].Host
			a.localOffsets, a.rowTile, a.lo, a.hi, a.block = s.localOffsets[j-s.from], &host.RowTile, row, row+1, &block
			host.Planes.Run(a, block.lo, block.hi)
			a.localOffsets, a.rowTile, a.block = nil, nil, nil
		}
	}
}

// bindGroup points a worker's arguments at the chains of a group and at their scratch memory, which
// begins at a slot.
func (r *hostRunner) bindGroup(a *Args, worker, slot int, g *chainGroup) {
	a.group = a.group[:0]
	for chain := g.first; chain < g.end; chain++ {
		a.group = append(a.group, [arenas][]byte{Shared: r.shared, Chain: r.chains[chain], Scratch: r.scratch[slot+chain-g.first]})
	}
	a.base, a.private = a.group[0], r.private[worker]
}
