package plan

import (
	"slices"

	"github.com/pollen-ml/pollen/cuda/kernels"
)

// A kernel that takes rows of arguments (kernels/rows.cuh) does the work of several launches in one
// call. An update has such a kernel: a network's parameters are updated by one call with a row for
// each parameter, instead of by many small calls, each with its own wait and launch. With rows of
// 3, 100 and 1 blocks, RowEnds is 3, 103, 104, and block 50 finds that it belongs to row 1.

// merge returns a call that also does the work of others, whose rows follow its own.
func (c Call) merge(others []Call) Call {
	c.RowEnds, c.Arguments = slices.Clone(c.RowEnds), slices.Clone(c.Arguments)
	for _, other := range others {
		for _, end := range other.RowEnds {
			c.RowEnds = append(c.RowEnds, c.Blocks[0]+end)
		}
		c.Blocks[0] += other.Blocks[0]
		c.Threads = max(c.Threads, other.Threads)
		c.Arguments = append(c.Arguments, other.Arguments...)
		c.Launch = max(c.Launch, other.Launch)
	}
	return c
}

// fuseRows fuses calls of the same kernel that takes rows, where no other call must come between
// them. A fused call waits for the inputs of all its rows. So calls are fused in the order in which
// their inputs are ready, the last ones first, and a group stops growing when the work that waits
// for the last input would take longer than a fraction of a launch: next to other calls it would
// take no time, and what follows it could begin earlier.
func fuseRows(calls []Call, p *planner) []Call {
	j := rowFusion{calls: calls, dependencies: newDependencies(calls, 1), leader: make([]int, len(calls))}
	kinds := map[string][]int{}
	for i, c := range calls {
		j.leader[i] = i
		if c.RowEnds != nil {
			kinds[c.Symbol] = append(kinds[c.Symbol], i)
		}
	}
	for i := range calls {
		if kind := kinds[calls[i].Symbol]; len(kind) > 1 && kind[0] == i {
			j.group(kind, p)
		}
	}
	return j.fused()
}

// waitingWork limits the work of a group that waits for the last input to 1/waitingWork of the time
// of a launch.
const waitingWork = 10

// rowFusion is a step's calls, in groups that will be fused.
type rowFusion struct {
	calls        []Call
	dependencies *dependencies
	leader       []int // for each call, the first call of its group
}

// group divides calls of one kernel into groups. A call is ready when the last group that it
// follows is.
func (j *rowFusion) group(kind []int, p *planner) {
	ends := make([]int, len(j.calls))
	for i, leader := range j.leader {
		ends[leader] = i
	}
	ready := func(i int) (last int) {
		last = -1
		for _, earlier := range j.dependencies.direct[i] {
			last = max(last, ends[j.leader[earlier]])
		}
		return last
	}
	slices.SortStableFunc(kind, func(a, b int) int { return ready(b) - ready(a) })
	leader, members, waiting := kind[0], 1, 0.0 // waiting: cycles of the work that is ready before the first member's
	for _, i := range kind[1:] {
		cost := j.calls[i].Bytes() * float64(p.Chains) / (bytesPerCycle * float64(max(1, p.Multiprocessors)))
		if ready(i) == ready(leader) {
			cost = 0
		}
		j.leader[i] = leader
		if members < kernels.MaxRows && waiting+cost <= CyclesPerLaunch/waitingWork && j.schedule() != nil {
			members, waiting = members+1, waiting+cost
			continue
		}
		j.leader[i] = i
		leader, members, waiting = i, 1, 0
	}
}

// schedule returns an order of the groups, by their leaders, that the calls' data allow: of the
// groups that may come next, always the one whose last member comes first in the original sequence.
// It returns nil if the groups depend on each other in a cycle, or if a call depends on another one
// of its group.
func (j *rowFusion) schedule() []int {
	last, waits, then := make([]int, len(j.calls)), make([]int, len(j.calls)), make([][]int, len(j.calls))
	for i := range j.calls {
		own := j.leader[i]
		last[own] = i
		for _, earlier := range j.dependencies.direct[i] {
			if j.leader[earlier] == own {
				return nil
			}
			then[j.leader[earlier]] = append(then[j.leader[earlier]], own)
			waits[own]++
		}
	}
	var ready, sequence []int
	groups := 0
	for i := range j.calls {
		if j.leader[i] != i {
			continue
		}
		if groups++; waits[i] == 0 {
			ready = append(ready, i)
		}
	}
	for len(ready) > 0 {
		at := 0
		for k := range ready {
			if last[ready[k]] < last[ready[at]] {
				at = k
			}
		}
		next := ready[at]
		ready = slices.Delete(ready, at, at+1)
		sequence = append(sequence, next)
		for _, i := range then[next] {
			if waits[i]--; waits[i] == 0 {
				ready = append(ready, i)
			}
		}
	}
	if len(sequence) < groups {
		return nil
	}
	return sequence
}

// fused returns the calls, with each group fused into one.
func (j *rowFusion) fused() (all []Call) {
	for _, leader := range j.schedule() {
		var others []Call
		for i := range j.calls {
			if j.leader[i] == leader && i != leader {
				others = append(others, j.calls[i])
			}
		}
		all = append(all, j.calls[leader].merge(others))
	}
	return all
}
