package plan

import (
	"cmp"
	"math/bits"
	"slices"

	"github.com/pollen-ml/pollen/tensor"
)

const arenas = int(tensor.Scratch) + 1

// dependencies describes which calls must follow which. Calls are numbered in sequence, step after
// step.
//
// A call follows the last earlier call that wrote what it reads (read after write), the last one
// that wrote what it writes (write after write), and those that have since read what it writes
// (write after read). For example, if call 0 writes x, 1 reads x and writes y, 2 reads x and y, and
// 3 writes x, then 1 follows 0, 2 follows 1, and 3 follows 2: 2 and 3 also follow 0, but that is
// implied. Memory is compared as ranges of bytes of an arena, in one chain's copy, since all
// chains' copies have the same layout.
type dependencies struct {
	direct [][]int  // for each call, the calls that it follows and that are not implied by another
	all    []bitset // for each call, all calls that it follows
}

// bitset is a set of calls.
type bitset []uint64

func (b bitset) has(n int) bool { return b[n/64]>>(n%64)&1 != 0 }

func (b bitset) add(n int) { b[n/64] |= 1 << (n % 64) }

func (b bitset) union(other bitset) {
	for i, word := range other {
		b[i] |= word
	}
}

// segment is a range of memory of which every call uses all or nothing.
type segment struct {
	writer  int   // the last call that wrote it, or -1
	readers []int // the calls that have read it since
}

// access is a call's use of consecutive segments.
type access struct {
	first, last int // segments; last is one past the end
	write       bool
}

// newDependencies finds the dependencies of a number of steps of a sequence of calls.
func newDependencies(calls []Call, steps int) *dependencies {
	accesses, n := accessesOf(calls)
	segments := make([]segment, n)
	for i := range segments {
		segments[i].writer = -1
	}
	total := steps * len(calls)
	words := (total + 63) / 64
	memory := make(bitset, (total+1)*words)
	row := func(i int) bitset { return memory[i*words:][:words] }
	o := &dependencies{direct: make([][]int, total), all: make([]bitset, total)}
	for number := range total {
		own := accesses[number%len(calls)]
		wanted := row(total)
		clear(wanted)
		for _, t := range own {
			for i := range segments[t.first:t.last] {
				segments[t.first+i].hazards(t, wanted)
			}
		}
		o.all[number] = row(number)
		o.direct[number] = o.transitiveReduction(wanted, o.all[number])
		for _, t := range own {
			for i := range segments[t.first:t.last] {
				segments[t.first+i].record(t, number)
			}
		}
	}
	return o
}

// hazards adds to wanted the calls that a call with access t to the segment must follow.
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

// record makes a call the segment's last writer or one of its readers. Later calls that follow a
// writer thereby also follow the calls before it.
func (p *segment) record(t access, number int) {
	if t.write {
		p.writer, p.readers = number, p.readers[:0]
	} else {
		p.readers = append(p.readers, number)
	}
}

// transitiveReduction returns the wanted calls that no other wanted call implies, and sets before
// to all calls that are followed, directly or not. It begins with the last wanted call, which no
// earlier one can imply.
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

// accessesOf cuts the arenas into segments at the begin and end of every buffer, and returns the
// calls' accesses and the number of segments.
func accessesOf(calls []Call) (accesses [][]access, segments int) {
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
		begin[arena] = segments
		segments += len(bounds[arena])
	}
	accesses = make([][]access, len(calls))
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
			accesses[i] = append(accesses[i], t)
		}
	}
	return accesses, segments
}

// Dependencies returns, for each call, the earlier calls that it must directly follow. These are
// the edges of a CUDA graph.
func Dependencies(calls []Call) [][]int { return newDependencies(calls, 1).direct }

// InLine returns dependencies that imply the given ones, but where more calls follow only one other
// call, so that they may begin early. If a call follows its predecessor and also calls that ended
// long before, InLine moves the latter dependencies to an earlier call that already waits for
// several calls.
//
// For example, a classifier's head follows the layer before it, and the call that gathers labels.
// The first layer waits for the images and for an update. It then also waits for the labels, which
// were gathered next to the images.
func InLine(follows [][]int) [][]int {
	follows = slices.Clone(follows)
	depth, followers := make([]int, len(follows)), make([]int, len(follows))
	for i, before := range follows {
		for _, b := range before {
			depth[i] = max(depth[i], depth[b]+1)
			followers[b]++
		}
	}
	for i, before := range follows {
		if len(before) < 2 {
			continue
		}
		last := slices.MaxFunc(before, func(a, b int) int { return cmp.Or(cmp.Compare(depth[a], depth[b]), cmp.Compare(a, b)) })
		join := last
		for len(follows[join]) == 1 {
			join = follows[join][0]
		}
		early := func(b int) bool { return b == last || b < join && depth[b] < depth[join] }
		if followers[last] > 1 || len(follows[join]) == 0 || slices.ContainsFunc(before, func(b int) bool { return !early(b) }) {
			continue
		}
		follows[join] = slices.Clone(follows[join])
		for _, b := range before {
			if b != last && !slices.Contains(follows[join], b) {
				follows[join] = append(follows[join], b)
			}
		}
		follows[i] = []int{last}
	}
	return follows
}

// Sequential returns dependencies in which each call follows the one before it.
func Sequential(calls int) [][]int {
	line := make([][]int, calls)
	for i := 1; i < len(line); i++ {
		line[i] = []int{i - 1}
	}
	return line
}

// PDLCalls returns which calls may begin before the one that they follow has ended, by programmatic
// dependent launch: those that follow a single call and are the only one to follow it. Blocks that
// wait for another kernel occupy multiprocessors, which other branches of a graph could use, so a
// call at a fork or a join does not begin early. Neither does a call whose predecessor may run next
// to another large call, one of the same depth in the graph.
func PDLCalls(follows [][]int, large []bool) []bool {
	depth, followers, beside := make([]int, len(follows)), make([]int, len(follows)), make([]int, len(follows)+1)
	for i, before := range follows {
		for _, b := range before {
			depth[i] = max(depth[i], depth[b]+1)
			followers[b]++
		}
		if large[i] {
			beside[depth[i]]++
		}
	}
	early := make([]bool, len(follows))
	for i, before := range follows {
		if len(before) != 1 || followers[before[0]] != 1 {
			continue
		}
		last := before[0]
		others := beside[depth[last]]
		if large[last] {
			others--
		}
		early[i] = others == 0
	}
	return early
}

// Large reports whether a call has, over all chains, at least one block for every four of a GPU's
// multiprocessors.
func (c Call) Large(chains, multiprocessors int) bool {
	const part = 4
	return part*c.Blocks[0]*max(1, c.Blocks[1])*chains >= multiprocessors
}
