package plan

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/pollen-ml/pollen/tensor"
)

// stepBytes is the size of each arena that the programs of scratchCalls may need.
const stepBytes = 4096

// scratchCalls returns the calls of a step, which write scratch buffers that lie one after the
// other, read some that were written before, and change a state.
func scratchCalls(r *rand.Rand, n int) (calls []Call, bytes int) {
	var filled []*tensor.Buffer
	for i := range n {
		var c Call
		for range r.IntN(3) {
			if len(filled) > 0 {
				c.Arguments = append(c.Arguments, tensor.In(filled[r.IntN(len(filled))]))
			}
		}
		if i%3 == 2 {
			state := tensor.NewBuffer("state", tensor.Chain, tensor.Uint8, 8)
			state.Offset = 8 * r.IntN(6)
			c.Arguments = append(c.Arguments, tensor.InOut(state))
		}
		b := tensor.NewBuffer("scratch", tensor.Scratch, tensor.Uint8, 1+r.IntN(200))
		b.Offset = bytes
		bytes += tensor.Align(b.Bytes())
		filled = append(filled, b)
		calls = append(calls, Call{Arguments: append(c.Arguments, tensor.Out(b))})
	}
	return calls, bytes
}

// anyOrder returns one of the orders that a graph's edges allow. The next call is always the one
// with the highest random number among those that may begin.
func anyOrder(r *rand.Rand, follows [][]int) (order []int) {
	turn, done := r.Perm(len(follows)), make([]bool, len(follows))
	for range follows {
		next := -1
		for i, earlier := range follows {
			waits := slices.ContainsFunc(earlier, func(e int) bool { return !done[e] })
			if !done[i] && !waits && (next < 0 || turn[i] > turn[next]) {
				next = i
			}
		}
		done[next], order = true, append(order, next)
	}
	return order
}

// TestPlaceScratch places the scratch buffers of made-up steps, with unlimited memory and with less
// and less. In any order that the edges then allow, the states must be the same as in sequence with
// separate buffers. Without a limit, no edges may be added, in a step or between two.
func TestPlaceScratch(t *testing.T) {
	const steps = 3
	r := rand.New(rand.NewPCG(5, 6))
	shared, tight := 0, 0
	for program := range 100 {
		calls, apart := scratchCalls(r, 14)
		want := runAll(calls, sequence(steps*len(calls)), stepBytes)[tensor.Chain]
		before := newDependencies(calls, 2).direct
		free := placeScratch(calls, math.MaxInt, findAhead(calls, nil))
		if after := newDependencies(calls, 2).direct; !slices.EqualFunc(after, before, slices.Equal[[]int]) {
			t.Fatalf("program %d: in %d bytes calls follow %v, by their data %v", program, free, after, before)
		}
		if free < apart {
			shared++
		}
		for _, most := range []int{math.MaxInt, free * 3 / 4, 0} {
			bytes := placeScratch(calls, most, findAhead(calls, nil))
			if bytes > free {
				t.Errorf("program %d: %d bytes with a limit of %d, without one %d", program, bytes, most, free)
			}
			if bytes < free {
				tight++
			}
			for range 10 {
				order := anyOrder(r, newDependencies(calls, steps).direct)
				if got := runAll(calls, order, stepBytes)[tensor.Chain]; !slices.Equal(got, want) {
					t.Fatalf("program %d, at most %d bytes: order %v is not the sequence", program, most, order)
				}
			}
		}
	}
	if shared < 25 || tight < 50 {
		t.Errorf("of 100 programs %d share memory without a limit, %d times of 300 a limit had an effect", shared, tight)
	}
}
