package cuda

import (
	"math"
	"slices"

	"github.com/pollen-ml/pollen/tensor"
)

// A schedule's own places in scratch memory are for launches that run one after the other: what one
// has read, the next may overwrite. Steps that run as CUDA graphs use other places, so that calls
// need not wait for each other because of where their results lie.

// apart copies launches, with scratch buffers of their own side by side, and returns the bytes that
// these take.
func apart(launches []tensor.Launch) (copies []tensor.Launch, bytes int) {
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

// layout is where a step's scratch buffers lie.
type layout struct {
	order   *order // by data only
	buffers []resident
}

// resident is a buffer, with the calls that use it, the first one first.
type resident struct {
	*tensor.Buffer
	users []int
}

// layOut finds the places of a step's scratch buffers, which come side by side, and returns the
// bytes that they take. Two buffers may share memory if other data already force all calls that use
// the one to come before those that use the other. If that takes more than most bytes, large
// buffers, and then smaller ones, also share when calls merely come first in the sequence; the
// graph must then keep that order.
func layOut(calls []call, most int) int {
	l := newLayout(calls)
	if len(l.buffers) == 0 {
		return 0
	}
	bytes := l.placeAll(math.MaxInt)
	for large := l.buffers[0].Bytes(); bytes > most && large > 0; large /= 2 {
		bytes = l.placeAll(large)
	}
	if bytes > most {
		bytes = l.placeAll(0)
	}
	return bytes
}

func newLayout(calls []call) *layout {
	l, number := &layout{order: orderOf(calls, 1)}, map[*tensor.Buffer]int{}
	for i, c := range calls {
		for _, a := range c.arguments {
			if a.Buffer == nil || a.Buffer.Arena != tensor.Scratch {
				continue
			}
			at, known := number[a.Buffer]
			if !known {
				at = len(l.buffers)
				number[a.Buffer] = at
				l.buffers = append(l.buffers, resident{Buffer: a.Buffer})
			}
			l.buffers[at].users = append(l.buffers[at].users, i)
		}
	}
	slices.SortStableFunc(l.buffers, func(a, b resident) int { return b.Bytes() - a.Bytes() })
	return l
}

// placeAll places the buffers. Those of at least large bytes share with each other by the sequence.
func (l *layout) placeAll(large int) (bytes int) {
	var all []*tensor.Buffer
	for _, b := range l.buffers {
		all = append(all, b.Buffer)
	}
	return tensor.Place(all, func(i, j int) bool { return l.mayShare(l.buffers[i], l.buffers[j], large) })
}

func (l *layout) mayShare(a, b resident, large int) bool {
	if a.users[0] > b.users[0] {
		a, b = b, a
	}
	if a.users[len(a.users)-1] >= b.users[0] {
		return false
	}
	return min(a.Bytes(), b.Bytes()) >= large || l.order.allBefore(a.users, b.users)
}

// allBefore reports whether each of the calls comes before each of the others.
func (o *order) allBefore(calls, others []int) bool {
	for _, later := range others {
		for _, earlier := range calls {
			if !o.before[later].has(earlier) {
				return false
			}
		}
	}
	return true
}

// stepCalls are the calls of a step, in which launches may do others' work, and each launch's
// geometry by itself. Scratch buffers have places side by side, and what calls ask for comes behind
// them.
func stepCalls(launches []tensor.Launch, place *placement) (calls []call, alone []geometry, err error) {
	own, taken := apart(launches)
	pooled := findPoolings(own)
	defer func() {
		place.copies, place.spreads, place.wanted, place.passes, place.totals = nil, nil, nil, nil, nil
	}()
	place.wanted, place.passes = map[*tensor.Buffer][]packing{}, map[*tensor.Buffer]int{}
	totals := map[int]*total{} // by the launches that do nothing
	through := func(each func(launch int, calls []call)) {
		place.base, place.workspace, place.copies, place.spreads = taken, 0, map[packed]*tensor.Buffer{}, nil
		for i := range own {
			with := pooled[i]
			if with == nil {
				with = callsOf
			}
			if t := place.totalOf(own, i); t != nil {
				totals[i], place.totals = t, append(place.totals, t)
				continue
			}
			place.summed, place.launch = nil, i
			calls := place.settle(with(place, &own[i]))
			place.forget(calls)
			each(i, calls)
		}
	}
	for i := range launches {
		if err := described(&launches[i]); err != nil {
			return nil, nil, named(err, &launches[i])
		}
		alone = append(alone, callsOf)
	}
	// The first time says which packed copies are wanted of what earlier launches make, and which
	// launches go through gradients that earlier ones sum.
	through(func(int, []call) {})
	through(func(i int, made []call) {
		for _, c := range made {
			c.launch = i
			calls = append(calls, c)
		}
		if s := place.summed; s != nil {
			alone[i] = func(p *placement, l *tensor.Launch) []call { return s.alone(p, l, callsOf) }
		}
	})
	for i, t := range totals {
		alone[i] = t.alone
	}
	leaveOut(calls)
	return join(calls, place), alone, left(place.totals)
}
