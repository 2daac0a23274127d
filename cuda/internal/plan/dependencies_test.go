package plan

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/pollen-ml/pollen/tensor"
)

// machine executes made-up calls on the arenas' bytes, each of which may hold any number. The
// numbers that a call writes depend on all numbers that it reads.
type machine [arenas][]uint64

const machineBytes = 24

func newMachine(bytes int) *machine {
	m := new(machine)
	for arena := range m {
		m[arena] = make([]uint64, bytes)
		for i := range m[arena] {
			m[arena][i] = uint64(1000*arena + i)
		}
	}
	return m
}

func mix(h, v uint64) uint64 {
	h = (h ^ v) * 0x9E3779B97F4A7C15
	return h ^ h>>29
}

func (m *machine) run(c Call, number int) {
	h := uint64(number)
	each := func(access tensor.Access, visit func(cell *uint64)) {
		for _, a := range c.Arguments {
			if a.Access&access == 0 {
				continue
			}
			for at := range a.Buffer.Bytes() {
				visit(&m[a.Buffer.Arena][a.Buffer.Offset+at])
			}
		}
	}
	each(tensor.Read, func(cell *uint64) { h = mix(h, *cell) })
	each(tensor.Write, func(cell *uint64) { h = mix(h, 1); *cell = h })
}

// runAll runs steps of calls in an order of all of them.
func runAll(calls []Call, order []int, bytes int) *machine {
	m := newMachine(bytes)
	for _, number := range order {
		m.run(calls[number%len(calls)], number)
	}
	return m
}

func (m *machine) equal(other *machine) bool {
	return slices.EqualFunc(m[:], other[:], func(a, b []uint64) bool { return slices.Equal(a, b) })
}

// randomCalls returns calls with a few arguments each, anywhere in the arenas.
func randomCalls(r *rand.Rand, n int) []Call {
	calls := make([]Call, n)
	for i := range calls {
		calls[i].Symbol = fmt.Sprint("call ", i)
		for range 1 + r.IntN(3) {
			b := tensor.NewBuffer("b", tensor.Arena(r.IntN(arenas)), tensor.Uint8, r.IntN(8))
			b.Offset = r.IntN(machineBytes - b.Elements)
			calls[i].Arguments = append(calls[i].Arguments, tensor.Argument{Buffer: b, Access: 1 + tensor.Access(r.IntN(3))})
		}
	}
	return calls
}

// sequence returns 0 to n-1.
func sequence(n int) []int {
	all := make([]int, n)
	for i := range all {
		all[i] = i
	}
	return all
}

// everyOrder visits the orders that a graph's edges allow, in which each call comes after those
// that it follows.
func everyOrder(follows [][]int, visit func(order []int)) {
	var order []int
	done := make([]bool, len(follows))
	var next func()
	next = func() {
		if len(order) == len(follows) {
			visit(order)
			return
		}
		for i := range follows {
			if done[i] || slices.ContainsFunc(follows[i], func(earlier int) bool { return !done[earlier] }) {
				continue
			}
			done[i], order = true, append(order, i)
			next()
			done[i], order = false, order[:len(order)-1]
		}
	}
	next()
}

// TestEveryOrderIsTheSequence runs made-up programs in every order that the edges allow.
func TestEveryOrderIsTheSequence(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	orders := 0
	for program := range 400 {
		steps := 1 + program%3
		calls := randomCalls(r, 6/steps)
		want := runAll(calls, sequence(steps*len(calls)), machineBytes)
		everyOrder(newDependencies(calls, steps).direct, func(order []int) {
			if orders++; !runAll(calls, order, machineBytes).equal(want) {
				t.Fatalf("program %d, %d steps of %v: order %v is not the sequence", program, steps, calls, order)
			}
		})
	}
	if orders < 2000 {
		t.Errorf("%d orders of 400 programs: the calls are hardly ever independent", orders)
	}
}

// conflict reports whether two calls must keep their order: one writes what the other uses.
func conflict(a, b Call) bool {
	for _, g := range a.Arguments {
		for _, h := range b.Arguments {
			empty := min(g.Buffer.Elements, h.Buffer.Elements) == 0
			if (g.Access|h.Access)&tensor.Write != 0 && !empty && g.Buffer.Overlaps(h.Buffer) {
				return true
			}
		}
	}
	return false
}

// TestOrderIsReduced compares the edges with those that a loop over all pairs finds: all that are
// not implied by others.
func TestOrderIsReduced(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for program := range 100 {
		steps := 1 + program%3
		calls := randomCalls(r, 12)
		n := steps * len(calls)
		after := make([][]bool, n) // [i][j]: i comes after j
		for i := range after {
			after[i] = make([]bool, n)
			for j := range i {
				after[i][j] = conflict(calls[i%len(calls)], calls[j%len(calls)])
			}
			for j := range i {
				for k := range j {
					after[i][k] = after[i][k] || after[i][j] && after[j][k]
				}
			}
		}
		for i, follows := range newDependencies(calls, steps).direct {
			var want []int
			for j := range i {
				implied := false
				for k := j + 1; k < i; k++ {
					implied = implied || after[i][k] && after[k][j]
				}
				if after[i][j] && !implied {
					want = append(want, j)
				}
			}
			if slices.Sort(follows); !slices.Equal(follows, want) {
				t.Fatalf("program %d: call %d of %v follows %v, want %v", program, i, calls, follows, want)
			}
		}
	}
}

// TestInLine: if a call follows a line and others that ended before the line began, it then follows
// only the line, and the begin of the line follows the others. All calls that came before a call
// still do.
func TestInLine(t *testing.T) {
	// 3 joins 0 and 2; 4 is in line; 5 joins 4 and 1, which ended before 3 began. 7 joins 5 and 6,
	// which did not.
	follows := [][]int{nil, nil, {0}, {0, 2}, {3}, {1, 4}, {2}, {5, 6}}
	want := [][]int{nil, nil, {0}, {0, 2, 1}, {3}, {4}, {2}, {5, 6}}
	if got := InLine(follows); !slices.EqualFunc(got, want, slices.Equal[[]int]) {
		t.Errorf("got %v, want %v", got, want)
	}
	r := rand.New(rand.NewPCG(7, 8))
	moved := 0
	for range 200 {
		calls, _ := scratchCalls(r, 14)
		own := newDependencies(calls, 3)
		line := InLine(own.direct)
		before := make([]bitset, len(line))
		for i, earlier := range line {
			before[i] = make(bitset, (len(line)+63)/64)
			for _, b := range earlier {
				if b >= i {
					t.Fatalf("call %d follows %d", i, b)
				}
				before[i].add(b)
				before[i].union(before[b])
			}
			for b := range i {
				if own.all[i].has(b) && !before[i].has(b) {
					t.Fatalf("call %d does not follow %d any more: %v, was %v", i, b, line, own.direct)
				}
			}
			if len(earlier) < len(own.direct[i]) {
				moved++
			}
		}
	}
	if moved == 0 {
		t.Error("no call was put in line")
	}
}

// TestPDLCalls: a call begins early if it follows a single call, is the only one to follow that
// call, and no large call runs next to that call.
func TestPDLCalls(t *testing.T) {
	// 0 forks to 1 and 2, which meet in 3; then 4 and 5 come in line. 6 to 9 are another line, next
	// to 0, 1, 3 and 4.
	follows := [][]int{nil, {0}, {0}, {1, 2}, {3}, {4}, nil, {6}, {7}, {8}}
	for large, want := range map[int][]bool{
		0: {false, false, false, false, true, true, false, false, true, true}, // next to 6
		4: {false, false, false, false, true, true, false, true, true, true},
		9: {false, false, false, false, true, false, false, true, true, true}, // next to 4
	} {
		all := make([]bool, len(follows))
		all[large] = true
		if got := PDLCalls(follows, all); !slices.Equal(got, want) {
			t.Errorf("%d is large: got %v, want %v", large, got, want)
		}
	}
}
