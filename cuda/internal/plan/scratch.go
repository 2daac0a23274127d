package plan

import (
	"math"
	"slices"

	"github.com/pollen-ml/pollen/tensor"
)

// A workload has placed its scratch buffers for launches that run one after the other: what one
// launch has read for the last time, the next may overwrite. In a CUDA graph that would make calls
// wait only because their results share memory. So a step's buffers are first separated
// (separateScratch), calls are planned, and then buffers share memory again (placeScratch) where
// that adds no edge to the graph.

// separateScratch copies launches, with scratch buffers that lie one behind the other, and returns
// the bytes that these take.
func separateScratch(launches []tensor.Launch) (copies []tensor.Launch, bytes int) {
	moved := map[*tensor.Buffer]*tensor.Buffer{}
	for _, l := range launches {
		copies = append(copies, l.WithBuffers(func(own *tensor.Buffer) *tensor.Buffer {
			if own.Arena != tensor.Scratch {
				return own
			}
			b := moved[own]
			if b == nil {
				b = tensor.NewBuffer(own.Name, tensor.Scratch, own.DType, own.Elements)
				b.Offset = bytes
				bytes += tensor.Align(b.Bytes())
				moved[own] = b
			}
			return b
		}))
	}
	return copies, bytes
}

// scratchLayout is the scratch buffers of a step.
type scratchLayout struct {
	dependencies *dependencies // while no buffers share memory
	buffers      []liveBuffer
	separate     []*tensor.Buffer // have memory of their own
}

// liveBuffer is a buffer with the calls that use it, in sequence.
type liveBuffer struct {
	*tensor.Buffer
	users []int
}

// placeScratch places the scratch buffers of a step, and returns the bytes that they take. Two
// buffers may share memory if their data already force all calls that use the one to come before
// all that use the other. If that takes more than most bytes, large buffers, then smaller ones,
// also share if their calls merely come first in the sequence. The graph must then keep that order,
// which costs time. Buffers of separate never share memory.
func placeScratch(calls []Call, most int, separate []*tensor.Buffer) int {
	l := newLayout(calls)
	l.separate = separate
	if len(l.buffers) == 0 {
		return 0
	}
	// Lower the size from which buffers share by sequence, until the rest fits.
	bytes := l.placeAll(math.MaxInt)
	for large := l.buffers[0].Bytes(); bytes > most && large > 0; large /= 2 {
		bytes = l.placeAll(large)
	}
	if bytes > most {
		bytes = l.placeAll(0)
	}
	return bytes
}

func newLayout(calls []Call) *scratchLayout {
	l, number := &scratchLayout{dependencies: newDependencies(calls, 1)}, map[*tensor.Buffer]int{}
	for i, c := range calls {
		for _, a := range c.Arguments {
			if a.Buffer == nil || a.Buffer.Arena != tensor.Scratch {
				continue
			}
			at, known := number[a.Buffer]
			if !known {
				at = len(l.buffers)
				number[a.Buffer] = at
				l.buffers = append(l.buffers, liveBuffer{Buffer: a.Buffer})
			}
			l.buffers[at].users = append(l.buffers[at].users, i)
		}
	}
	slices.SortStableFunc(l.buffers, func(a, b liveBuffer) int { return b.Bytes() - a.Bytes() })
	return l
}

// placeAll places the buffers. Two of at least large bytes may share by the sequence.
func (l *scratchLayout) placeAll(large int) (bytes int) {
	var all []*tensor.Buffer
	for _, b := range l.buffers {
		all = append(all, b.Buffer)
	}
	return tensor.Place(all, func(i, j int) bool { return l.mayShare(l.buffers[i], l.buffers[j], large) })
}

func (l *scratchLayout) mayShare(a, b liveBuffer, large int) bool {
	if a.users[0] > b.users[0] {
		a, b = b, a
	}
	if a.users[len(a.users)-1] >= b.users[0] || slices.Contains(l.separate, a.Buffer) || slices.Contains(l.separate, b.Buffer) {
		return false
	}
	return min(a.Bytes(), b.Bytes()) >= large || l.dependencies.allBefore(a.users, b.users)
}

// allBefore reports whether all of calls come before all of others.
func (o *dependencies) allBefore(calls, others []int) bool {
	for _, later := range others {
		for _, earlier := range calls {
			if !o.all[later].has(earlier) {
				return false
			}
		}
	}
	return true
}
