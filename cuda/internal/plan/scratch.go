package plan

import (
	"math"
	"slices"

	"github.com/pollen-ml/pollen/tensor"
)

// A workload has placed its scratch buffers for launches that run one after the other: a launch may
// overwrite buffers that earlier launches have read for the last time. In a CUDA graph that would
// make calls wait only because their results share memory. So a step's buffers are first separated
// (separateScratch), calls are planned, and then buffers share memory again (placeScratch) where
// that adds no edge to the graph.

// separateScratch copies launches, with scratch buffers that do not share memory, and returns the
// bytes that these take.
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

// scratchLayout describes the scratch buffers of a step.
type scratchLayout struct {
	dependencies *dependencies // of two steps in a row, while no buffers share memory
	numbers      [2][]int      // the numbers of a step's calls among these, in the first step and in the second
	buffers      []liveBuffer
}

// liveBuffer is a buffer with the calls that use it, in sequence.
type liveBuffer struct {
	*tensor.Buffer
	users []int
}

// placeScratch places the scratch buffers of a step, and returns the bytes that they take. Two
// buffers a and b may share memory if the calls' data already force all calls that use a to come
// before all calls that use b, and these to come before the calls of the next step that use a
// again. If that takes more than most bytes, the second condition is dropped, first for large
// buffers, then for smaller ones, so that the next step has to wait. If it still takes more, the
// first condition is dropped, too: it is then enough that the calls that use a come first in the
// sequence. The graph must keep that order, which costs time.
func placeScratch(calls []Call, most int, ahead *Ahead) int {
	l := newLayout(calls, ahead)
	if len(l.buffers) == 0 {
		return 0
	}
	// Lower the minimum sizes of buffers that share at a cost, until the rest fits.
	never, largest := math.MaxInt, l.buffers[0].Bytes()
	bytes := l.placeAll(never, never)
	for size := largest; bytes > most && size > 0; size /= 2 {
		bytes = l.placeAll(size, never)
	}
	for size := largest; bytes > most && size > 0; size /= 2 {
		bytes = l.placeAll(0, size)
	}
	if bytes > most {
		bytes = l.placeAll(0, 0)
	}
	return bytes
}

// newLayout lists the scratch buffers of calls, the largest first, with the calls that use each,
// and finds the dependencies in two successive steps.
func newLayout(calls []Call, ahead *Ahead) *scratchLayout {
	l, index := &scratchLayout{}, map[*tensor.Buffer]int{}
	var two []Call
	ahead.Steps(calls, 2, func(c Call, number int) {
		if number >= 0 {
			step := min(1, len(l.numbers[0])/len(calls))
			l.numbers[step] = append(l.numbers[step], len(two))
		}
		two = append(two, c)
	})
	l.dependencies = newDependencies(two, 1)
	for i, c := range calls {
		for _, a := range c.Arguments {
			if a.Buffer == nil || a.Buffer.Arena != tensor.Scratch {
				continue
			}
			at, known := index[a.Buffer]
			if !known {
				at = len(l.buffers)
				index[a.Buffer] = at
				l.buffers = append(l.buffers, liveBuffer{Buffer: a.Buffer})
			}
			l.buffers[at].users = append(l.buffers[at].users, i)
		}
	}
	slices.SortStableFunc(l.buffers, func(a, b liveBuffer) int { return b.Bytes() - a.Bytes() })
	return l
}

// placeAll places the buffers. Two buffers of at least across bytes may share memory even if the
// next step then has to wait, and two of at least large bytes even if only the sequence of calls
// separates them.
func (l *scratchLayout) placeAll(across, large int) (bytes int) {
	var all []*tensor.Buffer
	for _, b := range l.buffers {
		all = append(all, b.Buffer)
	}
	return tensor.Place(all, func(i, j int) bool { return l.mayShare(l.buffers[i], l.buffers[j], across, large) })
}

// mayShare reports whether two buffers may share memory. No call may use both, and the gain must be
// worth it. Calls that share memory can no longer run side by side, so that small buffers share it
// only where their users run one after the other anyway.
func (l *scratchLayout) mayShare(a, b liveBuffer, across, large int) bool {
	if a.users[0] > b.users[0] {
		a, b = b, a
	}
	size := min(a.Bytes(), b.Bytes())
	switch {
	case a.users[len(a.users)-1] >= b.users[0]:
		return false
	case size >= large:
		return true
	case !l.allBefore(a.users, b.users, 0):
		return false
	}
	return size >= across || l.allBefore(b.users, a.users, 1)
}

// allBefore reports whether the calls' data force all of calls, in step 0, to come before all of
// others, in step 0 or 1.
func (l *scratchLayout) allBefore(calls, others []int, step int) bool {
	for _, later := range others {
		for _, earlier := range calls {
			if !l.dependencies.all[l.numbers[step][later]].has(l.numbers[0][earlier]) {
				return false
			}
		}
	}
	return true
}
