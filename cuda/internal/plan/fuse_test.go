package plan

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/pollen-ml/pollen/cuda/kernels"
	"github.com/pollen-ml/pollen/tensor"
)

// fusionOf groups calls; the ones with the symbols "a" and "b" take rows.
func fusionOf(calls []Call, p *planner) rowFusion {
	j := rowFusion{calls: calls, dependencies: newDependencies(calls, 1), leader: sequence(len(calls))}
	for _, symbol := range []string{"a", "b"} {
		var kind []int
		for i, c := range calls {
			if c.Symbol == symbol {
				kind = append(kind, i)
			}
		}
		if kind != nil {
			j.group(kind, p)
		}
	}
	return j
}

// TestFusedCallsAreTheSequence runs made-up programs whose calls were fused, with the calls of a
// group in any order: no call may come before its inputs, and no two calls of a group may depend on
// each other.
func TestFusedCallsAreTheSequence(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	joined, refused := 0, 0
	for program := range 3000 {
		calls := randomCalls(r, 7)
		for i := range calls {
			calls[i].Symbol = []string{"a", "a", "b", "b", "c"}[r.IntN(5)]
		}
		j := fusionOf(calls, &planner{Target: Target{Chains: 1, Multiprocessors: 132}})
		var order []int
		for _, leader := range j.schedule() {
			var members []int
			for i := range calls {
				if j.leader[i] == leader {
					members = append(members, i)
				}
			}
			for _, i := range members {
				if calls[i].Symbol != calls[leader].Symbol || len(members) > 1 && calls[i].Symbol == "c" {
					t.Fatalf("program %d: calls %v of other kernels are joined", program, members)
				}
			}
			joined += len(members) - 1
			r.Shuffle(len(members), func(a, b int) { members[a], members[b] = members[b], members[a] })
			order = append(order, members...)
		}
		for i, c := range calls {
			refused += min(1, len(j.dependencies.direct[i])) * strings.Count("ab", c.Symbol)
		}
		if !runAll(calls, order, machineBytes).equal(runAll(calls, sequence(len(calls)), machineBytes)) {
			t.Fatalf("program %d: %v in the order %v is not the sequence", program, calls, order)
		}
	}
	if joined < 1000 || refused < 1000 {
		t.Errorf("%d calls are joined to others, %d follow others: the programs are no test", joined, refused)
	}
}

// updateOf returns a call of a kernel that takes rows.
func updateOf(parameter, gradient *tensor.Buffer, blocks int) Call {
	arguments := []tensor.Argument{tensor.InOut(parameter), tensor.In(gradient), tensor.Int(parameter.Elements)}
	return Call{Symbol: "update_f32", Blocks: [2]int{blocks, 1}, Threads: 32 * blocks, Arguments: arguments, RowEnds: []int{blocks}}
}

// TestFuseRows: updates become one call, whose first row is the update whose gradient comes last.
// Updates with much work do not wait for that gradient, and a call has no more rows than a kernel
// takes.
func TestFuseRows(t *testing.T) {
	p := &planner{Target: Target{Chains: 1, Multiprocessors: 132}}
	at := 0
	buffer := func(elements int) *tensor.Buffer {
		b := tensor.NewBuffer("b", tensor.Chain, tensor.Float32, elements)
		b.Offset = at
		at += b.Bytes()
		return b
	}
	sizes := []int{100, 4 << 20, 300, 5, 7} // the first one's gradient comes last
	var calls, updates []Call
	for _, n := range sizes {
		w, dw := buffer(n), buffer(n)
		calls = append(calls, Call{Symbol: "gradient_f32", Arguments: []tensor.Argument{tensor.Out(dw)}})
		updates = append(updates, updateOf(w, dw, 1+n/1000))
	}
	slices.Reverse(calls)
	all := fuseRows(append(calls, updates...), p)
	var rows [][]int
	for _, c := range all {
		if c.RowEnds == nil {
			continue
		}
		var own []int
		for _, row := range c.Rows() {
			own = append(own, row[0].Buffer.Elements)
		}
		rows = append(rows, own)
		if c.Blocks[0] != c.RowEnds[len(c.RowEnds)-1] || !slices.IsSorted(c.RowEnds) {
			t.Errorf("%d blocks, rows end at %v", c.Blocks[0], c.RowEnds)
		}
	}
	if want := [][]int{{100}, {4 << 20, 300, 5, 7}}; !slices.EqualFunc(rows, want, func(a, b []int) bool { return slices.Equal(a, b) }) {
		t.Errorf("the rows are of %v parameters, want %v", rows, want)
	}
	var many []Call
	for range kernels.MaxRows + 3 {
		many = append(many, updateOf(buffer(8), buffer(8), 1))
	}
	if all := fuseRows(many, p); len(all) != 2 || len(all[0].RowEnds) != kernels.MaxRows || len(all[1].RowEnds) != 3 {
		t.Errorf("%d calls of %d updates", len(all), len(many))
	}
	if all := fuseRows(many[:1], p); len(all) != 1 || len(all[0].RowEnds) != 1 {
		t.Errorf("one update becomes %d", len(all))
	}
}
