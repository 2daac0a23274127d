package cuda

import (
	"math/bits"
	"slices"

	"github.com/pollen-ml/pollen/tensor"
)

// order says which calls must come before which. Calls are numbered in the sequence in which they
// were given, for several steps one after the other.
//
// A call follows the earlier ones that wrote what it reads or writes, and those that read what it
// writes. Memory is compared by ranges of an arena's bytes, in one chain's copy: all chains' copies
// are alike.
type order struct {
	follows [][]int // of each call, the earlier ones that it follows directly: none follows another
	before  []set   // of each call, all that it follows
}

// set is a set of calls.
type set []uint64

func (b set) has(n int) bool { return b[n/64]>>(n%64)&1 != 0 }

func (b set) add(n int) { b[n/64] |= 1 << (n % 64) }

func (b set) join(other set) {
	for i, word := range other {
		b[i] |= word
	}
}

// piece is memory of which each call touches all or nothing, with the calls that touched it last.
type piece struct {
	writer  int   // the last one, or -1
	readers []int // since then
}

// touch is what a call does with some pieces that lie side by side.
type touch struct {
	first, last int // pieces; last is one past the end
	write       bool
}

// orderOf finds the order of that many steps of a sequence of calls.
func orderOf(calls []call, steps int) *order {
	touches, n := touchesOf(calls)
	pieces := make([]piece, n)
	for i := range pieces {
		pieces[i].writer = -1
	}
	total := steps * len(calls)
	words := (total + 63) / 64
	memory := make(set, (total+1)*words)
	row := func(i int) set { return memory[i*words:][:words] }
	o := &order{follows: make([][]int, total), before: make([]set, total)}
	for number := range total {
		own := touches[number%len(calls)]
		wanted := row(total)
		clear(wanted)
		for _, t := range own {
			for i := range pieces[t.first:t.last] {
				pieces[t.first+i].hazards(t, wanted)
			}
		}
		o.before[number] = row(number)
		o.follows[number] = o.reduce(wanted, o.before[number])
		for _, t := range own {
			for i := range pieces[t.first:t.last] {
				pieces[t.first+i].note(t, number)
			}
		}
	}
	return o
}

// hazards adds the calls that a call which touches the piece must follow.
func (p *piece) hazards(t touch, wanted set) {
	if p.writer >= 0 {
		wanted.add(p.writer)
	}
	if t.write {
		for _, r := range p.readers {
			wanted.add(r)
		}
	}
}

// note remembers a call that touches the piece, and forgets those that later calls follow by
// following it.
func (p *piece) note(t touch, number int) {
	if t.write {
		p.writer, p.readers = number, p.readers[:0]
	} else {
		p.readers = append(p.readers, number)
	}
}

// reduce keeps, of the calls that a call must follow, those that it does not follow through
// another, and adds all that it follows to before. It begins with the last of them: no earlier one
// can follow that.
func (o *order) reduce(wanted, before set) []int {
	var direct []int
	for i := len(wanted) - 1; i >= 0; i-- {
		for wanted[i]&^before[i] != 0 {
			number := 64*i + bits.Len64(wanted[i]&^before[i]) - 1
			direct = append(direct, number)
			before.add(number)
			before.join(o.before[number])
		}
	}
	return direct
}

// touchesOf cuts the arenas into pieces, and returns those that each call touches.
func touchesOf(calls []call) (touches [][]touch, pieces int) {
	var bounds [arenas][]int
	for _, c := range calls {
		for _, a := range c.arguments {
			if b := a.Buffer; b != nil {
				bounds[b.Arena] = append(bounds[b.Arena], b.Offset, b.Offset+b.Bytes())
			}
		}
	}
	var begin [arenas]int
	for arena := range bounds {
		slices.Sort(bounds[arena])
		bounds[arena] = slices.Compact(bounds[arena])
		begin[arena] = pieces
		pieces += len(bounds[arena])
	}
	touches = make([][]touch, len(calls))
	for i, c := range calls {
		for _, a := range c.arguments {
			b := a.Buffer
			if b == nil {
				continue
			}
			at := func(offset int) int {
				found, _ := slices.BinarySearch(bounds[b.Arena], offset)
				return begin[b.Arena] + found
			}
			t := touch{first: at(b.Offset), last: at(b.Offset + b.Bytes()), write: a.Access&tensor.Write != 0}
			touches[i] = append(touches[i], t)
		}
	}
	return touches, pieces
}
