package graph

import (
	"sort"

	"github.com/pollen-ml/pollen/tensor"
)

// plan is the static memory plan: the offset of each buffer in its arena. Pinned buffers, in the
// arenas Shared and Chain, keep their values between steps and have separate memory. Scratch
// buffers share memory if their live ranges do not overlap. The plan is the same for every chain:
// an arena is one block of memory, and an offset the buffer's place in it.
type plan struct {
	pinned  []*tensor.Buffer
	seen    map[*tensor.Buffer]bool
	ranges  map[*tensor.Buffer]*liveRange
	scratch []*liveRange
}

// liveRange is the interval of launches, first to last, in which a scratch buffer is used.
type liveRange struct {
	buffer      *tensor.Buffer
	first, last int
}

func newPlan() *plan {
	return &plan{seen: map[*tensor.Buffer]bool{}, ranges: map[*tensor.Buffer]*liveRange{}}
}

// pin reserves separate memory for a buffer, unless it is scratch.
func (p *plan) pin(b *tensor.Buffer) {
	if b.Arena != tensor.Scratch && !p.seen[b] {
		p.seen[b] = true
		p.pinned = append(p.pinned, b)
	}
}

// use extends the live ranges of the buffers of one op's launches, which are numbered from first.
func (p *plan) use(first int, launches []tensor.Launch) {
	touch := func(b *tensor.Buffer, at int) {
		s := p.ranges[b]
		if s == nil {
			s = &liveRange{buffer: b, first: at}
			p.ranges[b] = s
			p.scratch = append(p.scratch, s)
		}
		s.last = at
	}
	for i := range launches {
		planes := launches[i].Host.Planes
		for j, argument := range launches[i].Arguments {
			if b := argument.Buffer; b != nil {
				if p.pin(b); b.Arena == tensor.Scratch {
					touch(b, first+i)
					if j > 0 && planes.Count > 0 && planes.Input == 0 {
						touch(b, first+i+1) // it may alternate with the next launch, see tensor.Planes
					}
				}
			}
		}
	}
}

// offsets sets every buffer's offset and returns the bytes of each arena. Scratch buffers are
// placed largest first, each at the lowest offset where it overlaps no buffer with an overlapping
// live range. That is the greedy-by-size heuristic; optimal placement is NP-hard. The sort is
// stable, so that equal buffers are placed in the order of launches, and plans are reproducible.
func (p *plan) offsets() [3]int {
	var bytes [3]int
	for _, b := range p.pinned {
		b.Offset = bytes[b.Arena]
		bytes[b.Arena] += tensor.Align(b.Bytes())
	}
	sort.SliceStable(p.scratch, func(i, j int) bool { return p.scratch[i].buffer.Bytes() > p.scratch[j].buffer.Bytes() })
	var scratch []*tensor.Buffer
	for _, s := range p.scratch {
		scratch = append(scratch, s.buffer)
	}
	bytes[tensor.Scratch] = tensor.Place(scratch, func(i, j int) bool {
		return p.scratch[j].last < p.scratch[i].first || p.scratch[i].last < p.scratch[j].first
	})
	return bytes
}
