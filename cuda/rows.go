package cuda

import (
	"encoding/binary"
	"slices"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/cuda/kernels"
	"github.com/pollen-ml/pollen/tensor"
)

// A kernel that takes rows (kernels/rows.cuh) does the work of several launches at once, such as
// the updates of a network's parameters.

// rows are the rows of a call's arguments.
func (c call) rows() [][]tensor.Argument {
	return slices.Collect(slices.Chunk(c.arguments, len(c.arguments)/len(c.ends)))
}

// appendRow appends arguments as the kernel's parameter has them: each at a multiple of its size, a
// buffer at one of 8 bytes.
func appendRow(to []byte, arguments []tensor.Argument, value func(tensor.Argument) (low, high uint64)) []byte {
	for _, a := range arguments {
		low, high := value(a)
		if p := kernels.ParameterOf(a); p == kernels.Integer || p == kernels.Float32 {
			to = binary.NativeEndian.AppendUint32(to, uint32(low))
			continue
		}
		to = binary.NativeEndian.AppendUint64(aligned(to), low)
		if a.Buffer != nil {
			to = binary.NativeEndian.AppendUint64(to, high)
		}
	}
	return aligned(to)
}

func aligned(bytes []byte) []byte { return append(bytes, make([]byte, -len(bytes)&7)...) }

// fits refuses rows that are not the kernel's.
func (c call) fits(e kernels.Entry) error {
	if (c.ends == nil) != (e.Row == 0) || len(c.ends) > kernels.MaxRows {
		return errors.Errorf("cuda: %s takes at most %d rows if any, a row being %d bytes; the launch has %d", e.Name, kernels.MaxRows, e.Row, len(c.ends))
	}
	if c.ends == nil {
		return nil
	}
	for _, row := range c.rows() {
		got := len(appendRow(nil, row, func(tensor.Argument) (low, high uint64) { return }))
		if got != e.Row {
			return errors.Errorf("cuda: a row of %s has %d bytes, the launch's arguments %d", e.Name, e.Row, got)
		}
	}
	return nil
}

// rowsParameter is the parameter of a kernel that takes rows.
func rowsParameter(c call, value func(tensor.Argument) (low, high uint64)) []byte {
	var ends, rows []byte
	for i := range kernels.MaxRows {
		ends = binary.NativeEndian.AppendUint32(ends, uint32(c.ends[min(i, len(c.ends)-1)]))
	}
	for _, row := range c.rows() {
		rows = appendRow(rows, row, value)
	}
	missing := (kernels.MaxRows - len(c.ends)) * (len(rows) / len(c.ends))
	return append(append(ends, rows...), make([]byte, missing)...)
}

// with is a call that also does the work of others.
func (c call) with(others []call) call {
	c.ends, c.arguments = slices.Clone(c.ends), slices.Clone(c.arguments)
	for _, other := range others {
		for _, end := range other.ends {
			c.ends = append(c.ends, c.blocks[0]+end)
		}
		c.blocks[0] += other.blocks[0]
		c.threads = max(c.threads, other.threads)
		c.arguments = append(c.arguments, other.arguments...)
		c.launch = max(c.launch, other.launch)
	}
	return c
}

// join makes calls of one kernel that takes rows one call, where others do not come between them.
// Those whose data are there last come together, but as they wait for the last of them, only with
// work that takes no longer than a launch.
func join(calls []call, p *placement) []call {
	j := joining{calls: calls, order: orderOf(calls, 1), leader: make([]int, len(calls))}
	kinds := map[string][]int{}
	for i, c := range calls {
		j.leader[i] = i
		if c.ends != nil {
			kinds[c.symbol] = append(kinds[c.symbol], i)
		}
	}
	for i := range calls {
		if kind := kinds[calls[i].symbol]; len(kind) > 1 && kind[0] == i {
			j.group(kind, p)
		}
	}
	return j.joined()
}

// joining is the calls of a step, some of which belong to the groups of others.
type joining struct {
	calls  []call
	order  *order
	leader []int // of each call's group, the call that does the group's work
}

// group makes groups of calls of one kernel. Those that follow a call whose group ends later are
// ready when that does.
func (j *joining) group(kind []int, p *placement) {
	ends := make([]int, len(j.calls))
	for i, leader := range j.leader {
		ends[leader] = i
	}
	ready := func(i int) (last int) {
		last = -1
		for _, earlier := range j.order.follows[i] {
			last = max(last, ends[j.leader[earlier]])
		}
		return last
	}
	slices.SortStableFunc(kind, func(a, b int) int { return ready(b) - ready(a) })
	leader, members, waiting := kind[0], 1, 0.0
	for _, i := range kind[1:] {
		cost := bytesOf(j.calls[i]) * float64(p.chains) / (bytesPerCycle * float64(max(1, p.multiprocessors)))
		j.leader[i] = leader
		if members < kernels.MaxRows && waiting+cost <= costOfLaunch && j.sequence() != nil {
			members, waiting = members+1, waiting+cost
			continue
		}
		j.leader[i] = i
		leader, members, waiting = i, 1, 0
	}
}

// sequence is an order of the groups that the calls' data allow, by their leaders, close to that of
// their last members; nil if there is none.
func (j *joining) sequence() []int {
	last, waits, then := make([]int, len(j.calls)), make([]int, len(j.calls)), make([][]int, len(j.calls))
	for i := range j.calls {
		own := j.leader[i]
		last[own] = i
		for _, earlier := range j.order.follows[i] {
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

// joined are the calls, those of a group together.
func (j *joining) joined() (all []call) {
	for _, leader := range j.sequence() {
		var others []call
		for i := range j.calls {
			if j.leader[i] == leader && i != leader {
				others = append(others, j.calls[i])
			}
		}
		all = append(all, j.calls[leader].with(others))
	}
	return all
}
