package tensor

import (
	"encoding/binary"
	"fmt"
	"math"
	"testing"
)

// stripped is a launch that says it keeps to strips of 8 among 32 elements, with later phases or
// without.
func stripped(phases int, arguments ...Argument) Launch {
	return Launch{Arguments: arguments, Host: HostKernel{Phases: make([]Phase, phases), Strip: Strip{32, 8}}}
}

func TestStages(t *testing.T) {
	x, y, z := placed("x", Scratch, Float32, 32, 0), placed("y", Scratch, Float32, 32, 128), placed("z", Scratch, Float32, 32, 256)
	reused := placed("reused", Scratch, Float32, 32, 0)
	shifted := placed("shifted", Scratch, Float32, 32, 64)
	wider := placed("wider", Scratch, Float64, 32, 0)
	few, elsewhere := placed("few", Scratch, Float32, 4, 512), placed("elsewhere", Chain, Float32, 32, 128)
	other := stripped(1, Out(z), In(y))
	other.Host.Strip.Tile = 16
	for _, c := range []struct {
		name     string
		launches []Launch
		want     []stage
	}{
		{"nothing", nil, nil},
		{"a chain", []Launch{stripped(1, Out(y), In(x)), stripped(1, Out(z), In(y)), stripped(1, InOut(z))}, []stage{{0, 3}}},
		{"no promise", []Launch{{Arguments: []Argument{Out(y), In(x)}}, {Arguments: []Argument{Out(z), In(y)}}}, []stage{{0, 1}, {1, 2}}},
		{"other strips", []Launch{stripped(1, Out(y), In(x)), other}, []stage{{0, 1}, {1, 2}}},
		{"scalars are arguments, too", []Launch{stripped(1, Out(y), In(x), Int(3)), stripped(1, Out(z), In(y), Int(4))}, []stage{{0, 2}}},
		{"the same memory again", []Launch{stripped(1, Out(y), In(x)), stripped(1, Out(reused), In(y))}, []stage{{0, 2}}},
		{"memory that others read", []Launch{stripped(1, Out(y), In(x)), stripped(1, Out(shifted), In(z))}, []stage{{0, 1}, {1, 2}}},
		{"elements of another size", []Launch{stripped(1, Out(y), In(x)), stripped(1, Out(wider), In(z))}, []stage{{0, 1}, {1, 2}}},
		{"the same place of another arena", []Launch{stripped(1, Out(y), In(x)), stripped(1, Out(z), In(elsewhere))}, []stage{{0, 2}}},
		{"what all tiles need", []Launch{stripped(1, Out(few), In(x)), stripped(1, Out(z), In(y), In(few))}, []stage{{0, 1}, {1, 2}}},
		{"what all tiles read", []Launch{stripped(1, Out(y), In(x), In(few)), stripped(1, Out(z), In(y), In(few))}, []stage{{0, 2}}},
		{"a sum between", []Launch{stripped(1, Out(y), In(x)), stripped(2, Out(few), In(y)), stripped(1, Out(z), In(y))}, []stage{{0, 3}}},
		{"a sum that is used", []Launch{stripped(2, Out(few), In(x)), stripped(1, Out(z), In(y), In(few))}, []stage{{0, 1}, {1, 2}}},
		{"a sum where others wrote", []Launch{stripped(1, Out(y), In(x)), stripped(2, Out(reused), In(y))}, []stage{{0, 2}}},
		{"others where a sum is written", []Launch{stripped(2, Out(y), In(x)), stripped(1, Out(y), In(z))}, []stage{{0, 1}, {1, 2}}},
	} {
		if got := stagesOf(c.launches); fmt.Sprint(got) != fmt.Sprint(c.want) {
			t.Errorf("%s: stages %v, want %v", c.name, got, c.want)
		}
	}
}

// TestStagesRun: launches that are run together compute what they do one by one, each with a
// workspace of its own.
func TestStagesRun(t *testing.T) {
	const n = 3*rangeTile + 5
	u, v := placed("u", Scratch, Float64, n, 0), placed("v", Scratch, Float64, n, Align(8*n))
	total, square := placed("total", Chain, Float64, 1, 0), placed("square", Chain, Float64, 1, Alignment)
	fill := Strips(n, 1, func(a *Args, lo, hi int) {
		for i := lo; i < hi; i++ {
			Slice[float64](a, 0)[i] = float64(i)
		}
	})
	next := Strips(n, 1, func(a *Args, lo, hi int) {
		for i := lo; i < hi; i++ {
			Slice[float64](a, 0)[i] = Slice[float64](a, 1)[i] + 1
		}
	})
	sum := Strips(n, 1, func(a *Args, lo, hi int) {
		part := &Workspace[float64](a)[lo/rangeTile]
		*part = 0
		for _, x := range Slice[float64](a, 1)[lo:hi] {
			*part += x
		}
	})
	sum.Workspace = 8 * 4
	sum.Phases = append(sum.Phases, Single(func(a *Args) {
		for _, part := range Workspace[float64](a)[:4] {
			Slice[float64](a, 0)[0] += part
		}
	}).Phases...)
	w := Workload{Launches: []Launch{
		{Kernel: "fill", Arguments: []Argument{Out(u)}, Host: fill},
		{Kernel: "sum", Arguments: []Argument{InOut(total), In(u)}, Host: sum},
		{Kernel: "next", Arguments: []Argument{Out(v), In(u)}, Host: next},
		{Kernel: "sum", Arguments: []Argument{InOut(square), In(v)}, Host: sum},
	}}
	w.Bytes[Scratch], w.Bytes[Chain] = 2*Align(8*n), 2*Alignment
	if stages := stagesOf(w.Launches); len(stages) != 1 {
		t.Fatalf("stages %v, want one", stages)
	}
	for _, threads := range []int{1, 3} {
		for _, chains := range []int{1, 4} {
			w.Chains = chains
			host := NewHost(threads)
			r, err := host.Load(w)
			if err != nil {
				t.Fatal(err)
			}
			if err := r.Run(2); err != nil {
				t.Fatal(err)
			}
			if err := r.Step(chains-1, func(int) error { return nil }); err != nil {
				t.Fatal(err)
			}
			const once = float64(n) * (n - 1) / 2
			for b, want := range map[*Buffer]float64{total: once, square: once + n} {
				got := readOne(t, r, b, chains-1)
				if got != 3*want {
					t.Errorf("%d threads, %d chains: %s is %v, want %v", threads, chains, b.Name, got, 3*want)
				}
			}
			if err := r.Close(); err != nil {
				t.Fatal(err)
			}
			if err := host.Close(); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// readOne is a buffer's one float64.
func readOne(t *testing.T, r Runner, b *Buffer, chain int) float64 {
	t.Helper()
	var raw [8]byte
	if err := r.Read(b, chain, 0, raw[:]); err != nil {
		t.Fatal(err)
	}
	return math.Float64frombits(binary.NativeEndian.Uint64(raw[:]))
}
