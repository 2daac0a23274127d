package plan

import (
	"math/bits"
	"slices"

	"github.com/pollen-ml/pollen/tensor"
)

// arenas is how many arenas there are.
const arenas = int(tensor.Scratch) + 1

// order says which calls must come before which. Calls are numbered in the sequence in which they
// were given, for several steps one after the other.
//
// A call follows the earlier ones that wrote what it reads or writes, and those that read what it
// writes. Memory is compared by ranges of an arena's bytes, in one chain's copy: all chains' copies
// are alike.
type dependencies struct {
	direct [][]int  // of each call, the earlier ones that it follows directly: none follows another
	all    []bitset // of each call, all that it follows
}

// set is a set of calls.
type bitset []uint64

func (b bitset) has(n int) bool { return b[n/64]>>(n%64)&1 != 0 }

func (b bitset) add(n int) { b[n/64] |= 1 << (n % 64) }

func (b bitset) union(other bitset) {
	for i, word := range other {
		b[i] |= word
	}
}

// piece is memory of which each call touches all or nothing, with the calls that touched it last.
type segment struct {
	writer  int   // the last one, or -1
	readers []int // since then
}

// touch is what a call does with some pieces that lie side by side.
type access struct {
	first, last int // pieces; last is one past the end
	write       bool
}

// newDependencies finds the order of that many steps of a sequence of calls.
func newDependencies(calls []Call, steps int) *dependencies {
	touches, n := accessesOf(calls)
	pieces := make([]segment, n)
	for i := range pieces {
		pieces[i].writer = -1
	}
	total := steps * len(calls)
	words := (total + 63) / 64
	memory := make(bitset, (total+1)*words)
	row := func(i int) bitset { return memory[i*words:][:words] }
	o := &dependencies{direct: make([][]int, total), all: make([]bitset, total)}
	for number := range total {
		own := touches[number%len(calls)]
		wanted := row(total)
		clear(wanted)
		for _, t := range own {
			for i := range pieces[t.first:t.last] {
				pieces[t.first+i].hazards(t, wanted)
			}
		}
		o.all[number] = row(number)
		o.direct[number] = o.transitiveReduction(wanted, o.all[number])
		for _, t := range own {
			for i := range pieces[t.first:t.last] {
				pieces[t.first+i].record(t, number)
			}
		}
	}
	return o
}

// hazards adds the calls that a call which touches the piece must follow.
func (p *segment) hazards(t access, wanted bitset) {
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
func (p *segment) record(t access, number int) {
	if t.write {
		p.writer, p.readers = number, p.readers[:0]
	} else {
		p.readers = append(p.readers, number)
	}
}

// reduce keeps, of the calls that a call must follow, those that it does not follow through
// another, and adds all that it follows to before. It begins with the last of them: no earlier one
// can follow that.
func (o *dependencies) transitiveReduction(wanted, before bitset) []int {
	var direct []int
	for i := len(wanted) - 1; i >= 0; i-- {
		for wanted[i]&^before[i] != 0 {
			number := 64*i + bits.Len64(wanted[i]&^before[i]) - 1
			direct = append(direct, number)
			before.add(number)
			before.union(o.all[number])
		}
	}
	return direct
}

// accessesOf cuts the arenas into pieces, and returns those that each call touches.
func accessesOf(calls []Call) (touches [][]access, pieces int) {
	var bounds [arenas][]int
	for _, c := range calls {
		for _, a := range c.Arguments {
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
	touches = make([][]access, len(calls))
	for i, c := range calls {
		for _, a := range c.Arguments {
			b := a.Buffer
			if b == nil {
				continue
			}
			at := func(offset int) int {
				found, _ := slices.BinarySearch(bounds[b.Arena], offset)
				return begin[b.Arena] + found
			}
			t := access{first: at(b.Offset), last: at(b.Offset + b.Bytes()), write: a.Access&tensor.Write != 0}
			touches[i] = append(touches[i], t)
		}
	}
	return touches, pieces
}

// Dependencies returns, for each call of a number of steps in a row, the earlier calls that it must
// directly follow.
func Dependencies(calls []Call, steps int) [][]int { return newDependencies(calls, steps).direct }

// Sequential is an order in which each of so many calls follows the one before it.
func Sequential(calls int) [][]int {
	line := make([][]int, calls)
	for i := 1; i < len(line); i++ {
		line[i] = []int{i - 1}
	}
	return line
}

// PDLCalls returns which calls begin early: each that follows a single call and is the only one
// to follow that.
func PDLCalls(follows [][]int) []bool {
	followers := make([]int, len(follows))
	for _, before := range follows {
		for _, b := range before {
			followers[b]++
		}
	}
	early := make([]bool, len(follows))
	for i, before := range follows {
		early[i] = len(before) == 1 && followers[before[0]] == 1
	}
	return early
}
