package graph

import (
	"sort"

	"github.com/pollen-ml/pollen/tensor"
)

// plan decides where in its arena each buffer lies. Kept buffers have a place of their own; scratch
// buffers that are never alive at the same time share memory.
type plan struct {
	kept  []*tensor.Buffer
	seen  map[*tensor.Buffer]bool
	spans map[*tensor.Buffer]*span
	order []*span
}

// span is a scratch buffer's life, in launches.
type span struct {
	buffer      *tensor.Buffer
	first, last int
}

func newPlan() *plan {
	return &plan{seen: map[*tensor.Buffer]bool{}, spans: map[*tensor.Buffer]*span{}}
}

// keep gives a buffer a place of its own.
func (p *plan) keep(b *tensor.Buffer) {
	if b.Arena != tensor.Scratch && !p.seen[b] {
		p.seen[b] = true
		p.kept = append(p.kept, b)
	}
}

// use notes one op's launches, numbered from first, and its temporaries.
func (p *plan) use(first int, launches []tensor.Launch, temps []*tensor.Buffer) {
	touch := func(b *tensor.Buffer, at int) {
		s := p.spans[b]
		if s == nil {
			s = &span{buffer: b, first: at}
			p.spans[b] = s
			p.order = append(p.order, s)
		}
		s.last = at
	}
	for i := range launches {
		for _, argument := range launches[i].Arguments {
			if b := argument.Buffer; b != nil {
				if p.keep(b); b.Arena == tensor.Scratch {
					touch(b, first+i)
				}
			}
		}
	}
	// All launches of an op see its temporaries and output whole: their phases may write them in
	// any order.
	for _, b := range temps {
		touch(b, first)
		touch(b, first+len(launches)-1)
	}
}

// offsets sets every buffer's offset and returns the bytes of each arena. Scratch buffers are
// placed largest first, each at the lowest offset where it overlaps no buffer alive with it.
func (p *plan) offsets() [3]int {
	var bytes [3]int
	for _, b := range p.kept {
		b.Offset = bytes[b.Arena]
		bytes[b.Arena] += tensor.Align(b.Bytes())
	}
	sort.SliceStable(p.order, func(i, j int) bool { return p.order[i].buffer.Bytes() > p.order[j].buffer.Bytes() })
	var scratch []*tensor.Buffer
	for _, s := range p.order {
		scratch = append(scratch, s.buffer)
	}
	bytes[tensor.Scratch] = tensor.Place(scratch, func(i, j int) bool {
		return p.order[j].last < p.order[i].first || p.order[i].last < p.order[j].first
	})
	return bytes
}
