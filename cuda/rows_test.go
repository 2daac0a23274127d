package cuda

import (
	"encoding/binary"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/pollen-ml/pollen/cuda/kernels"
	"github.com/pollen-ml/pollen/tensor"
)

// joiningOf groups calls, of which those whose symbols begin alike take rows.
func joiningOf(calls []call, p *placement) joining {
	j := joining{calls: calls, order: orderOf(calls, 1), leader: sequence(len(calls))}
	for _, symbol := range []string{"a", "b"} {
		var kind []int
		for i, c := range calls {
			if c.symbol == symbol {
				kind = append(kind, i)
			}
		}
		if kind != nil {
			j.group(kind, p)
		}
	}
	return j
}

// TestJoinedCallsAreTheSequence runs made-up programs whose calls were joined, those of a group in
// any order: nothing that others make comes too late for them, and no two need each other.
func TestJoinedCallsAreTheSequence(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	joined, refused := 0, 0
	for program := range 3000 {
		calls := randomCalls(r, 7)
		for i := range calls {
			calls[i].symbol = []string{"a", "a", "b", "b", "c"}[r.IntN(5)]
		}
		j := joiningOf(calls, &placement{chains: 1, multiprocessors: 132})
		var order []int
		for _, leader := range j.sequence() {
			var members []int
			for i := range calls {
				if j.leader[i] == leader {
					members = append(members, i)
				}
			}
			for _, i := range members {
				if calls[i].symbol != calls[leader].symbol || len(members) > 1 && calls[i].symbol == "c" {
					t.Fatalf("program %d: calls %v of other kernels are joined", program, members)
				}
			}
			joined += len(members) - 1
			r.Shuffle(len(members), func(a, b int) { members[a], members[b] = members[b], members[a] })
			order = append(order, members...)
		}
		for i, c := range calls {
			refused += min(1, len(j.order.follows[i])) * strings.Count("ab", c.symbol)
		}
		if !runAll(calls, order, machineBytes).equal(runAll(calls, sequence(len(calls)), machineBytes)) {
			t.Fatalf("program %d: %v in the order %v is not the sequence", program, calls, order)
		}
	}
	if joined < 1000 || refused < 1000 {
		t.Errorf("%d calls are joined to others, %d follow others: the programs are no test", joined, refused)
	}
}

// updateOf is a call of a kernel that takes rows.
func updateOf(parameter, gradient *tensor.Buffer, blocks int) call {
	arguments := []tensor.Argument{tensor.InOut(parameter), tensor.In(gradient), tensor.Int(parameter.Elements)}
	return call{symbol: "update_f32", blocks: [2]int{blocks, 1}, threads: 32 * blocks, arguments: arguments, ends: []int{blocks}}
}

// TestJoin: updates become one call, the one whose gradient comes last being joined first, but
// those whose work is long do not wait for it; and no more than a kernel takes.
func TestJoin(t *testing.T) {
	p := &placement{chains: 1, multiprocessors: 132}
	at := 0
	buffer := func(elements int) *tensor.Buffer {
		b := tensor.NewBuffer("b", tensor.Chain, tensor.Float32, elements)
		b.Offset = at
		at += b.Bytes()
		return b
	}
	sizes := []int{100, 4 << 20, 300, 5, 7} // of which the first's gradient comes last
	var calls, updates []call
	for _, n := range sizes {
		w, dw := buffer(n), buffer(n)
		calls = append(calls, call{symbol: "gradient_f32", arguments: []tensor.Argument{tensor.Out(dw)}})
		updates = append(updates, updateOf(w, dw, 1+n/1000))
	}
	slices.Reverse(calls)
	all := join(append(calls, updates...), p)
	var rows [][]int
	for _, c := range all {
		if c.ends == nil {
			continue
		}
		var own []int
		for _, row := range c.rows() {
			own = append(own, row[0].Buffer.Elements)
		}
		rows = append(rows, own)
		if c.blocks[0] != c.ends[len(c.ends)-1] || !slices.IsSorted(c.ends) {
			t.Errorf("%d blocks, rows end at %v", c.blocks[0], c.ends)
		}
	}
	if want := [][]int{{100}, {4 << 20, 300, 5, 7}}; !slices.EqualFunc(rows, want, func(a, b []int) bool { return slices.Equal(a, b) }) {
		t.Errorf("the rows are of %v parameters, wants %v", rows, want)
	}
	var many []call
	for range kernels.MaxRows + 3 {
		many = append(many, updateOf(buffer(8), buffer(8), 1))
	}
	if all := join(many, p); len(all) != 2 || len(all[0].ends) != kernels.MaxRows || len(all[1].ends) != 3 {
		t.Errorf("%d calls of %d updates", len(all), len(many))
	}
	if all := join(many[:1], p); len(all) != 1 || len(all[0].ends) != 1 {
		t.Errorf("one update becomes %d", len(all))
	}
}

// TestRowsParameter compares the bytes of two rows with those written by hand.
func TestRowsParameter(t *testing.T) {
	x := tensor.NewBuffer("x", tensor.Chain, tensor.Float32, 4)
	row := func(n int) []tensor.Argument {
		return []tensor.Argument{tensor.Int(n), tensor.In(x), tensor.Int(n + 1), tensor.Float(tensor.Float64, 1), tensor.Float(tensor.Float32, 2)}
	}
	c := call{symbol: "k_f32", threads: 32, arguments: slices.Concat(row(5), row(7)), ends: []int{3, 4}}
	got := rowsParameter(c, func(a tensor.Argument) (low, high uint64) {
		if a.Buffer != nil {
			return 0x1234, 0x5678
		}
		return a.Bits, 0
	})
	words := []uint32{3, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4}
	for _, n := range []uint32{5, 7} {
		words = append(words, n, 0, 0x1234, 0, 0x5678, 0, n+1, 0, 0, 0x3ff00000, 0x40000000, 0)
	}
	words = append(words, make([]uint32, 10*12)...)
	var want []byte
	for _, w := range words {
		want = binary.NativeEndian.AppendUint32(want, w)
	}
	if !slices.Equal(got, want) {
		t.Errorf("rows are\n%x\nwant\n%x", got, want)
	}
	e := kernels.Entry{Name: "k_f32", Threads: 32, Row: 48}
	if err := matches(e, c); err != nil {
		t.Error(err)
	}
	many := c
	many.arguments, many.ends = slices.Repeat(row(1), kernels.MaxRows+1), make([]int, kernels.MaxRows+1)
	for want, refused := range map[string]func() error{
		"a row of k_f32 has 56 bytes": func() error { e := e; e.Row = 56; return matches(e, c) },
		"if any, a row being 0 bytes": func() error { e := e; e.Row = 0; return matches(e, c) },
		"the launch has 0":            func() error { c := c; c.ends = nil; return matches(e, c) },
		"the launch has 13":           func() error { return matches(e, many) },
	} {
		if err := refused(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, wants %q", err, want)
		}
	}
}
