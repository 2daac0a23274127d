package tensor

import (
	"encoding/binary"
	"errors"
	"math"
	"slices"
	"testing"
)

// large is the number of elements of the buffers that a tiled launch owns: more than a cache holds.
const large = 1 << 20

// tiled returns a launch with the given rows of large buffers: 16 tiles of one phase, with the
// given numbers of phases before and after it.
func tiled(rows, unit, before, after int, arguments ...Argument) Launch {
	h := HostKernel{Phases: make([]Phase, before+1+after), RowTile: RowTile{Phase: before, Rows: rows, Unit: unit}}
	h.Phases[before].Tiles = 16
	h.RowTile.Owns = func(_ int, b *Buffer) bool { return b.Elements == large }
	return Launch{Arguments: arguments, Host: h}
}

// elements returns a tiled launch whose rows are single elements.
func elements(arguments ...Argument) Launch { return tiled(large, 1, 0, 0, arguments...) }

// inParts returns a tiled launch of 16 images with a partial sum per part.
func inParts(parts []int, arguments ...Argument) Launch {
	l := tiled(16, 1, 0, 1, arguments...)
	l.Host.RowTile.Parts = parts
	return l
}

// alignedRows returns a tiled launch whose tiles start at multiples of unit.
func alignedRows(rows, unit int, arguments ...Argument) Launch {
	l := tiled(rows, unit, 0, 0, arguments...)
	l.Host.RowTile.aligned = true
	return l
}

// summed returns a launch like elements, with an epilogue.
func summed(arguments ...Argument) Launch { return tiled(large, 1, 0, 1, arguments...) }

func TestStages(t *testing.T) {
	x, y, z := placed("x", Scratch, Float32, large, 0), placed("y", Scratch, Float32, large, 4*large), placed("z", Scratch, Float32, large, 8*large)
	reused := placed("reused", Scratch, Float32, large, 0)
	shifted := placed("shifted", Scratch, Float32, large, 2*large)
	wider := placed("wider", Scratch, Float64, large, 0)
	filter, other := placed("filter", Shared, Float32, maxSharedBytes/8, 0), placed("other", Shared, Float32, maxSharedBytes/8+1, 1<<30)
	huge := tiled(1, 1, 0, 0, InOut(placed("huge", Chain, Float32, maxTileBytes/4+1, 1<<30)))
	huge.Host.Phases[0].Tiles, huge.Host.RowTile.Owns = 1, func(int, *Buffer) bool { return true }
	few, elsewhere := placed("few", Scratch, Float32, 4, 16*large), placed("elsewhere", Chain, Float32, large, 4*large)
	images := tiled(16, 1, 0, 0, Out(z), In(y))
	ready := func(unit int, arguments ...Argument) Launch { return tiled(16, unit, 1, 0, arguments...) }
	for _, c := range []struct {
		name     string
		launches []Launch
		want     [][2]int
	}{
		{"nothing", nil, nil},
		{"a chain", []Launch{elements(Out(y), In(x)), elements(Out(z), In(y)), elements(InOut(z))}, [][2]int{{0, 3}}},
		{"no promise", []Launch{{Arguments: []Argument{Out(y), In(x)}}, {Arguments: []Argument{Out(z), In(y)}}}, [][2]int{{0, 1}, {1, 2}}},
		{"images after their elements", []Launch{elements(Out(y), In(x)), images}, [][2]int{{0, 2}}},
		{"images in units of two", []Launch{images, tiled(16, 2, 0, 0, Out(x), In(z))}, [][2]int{{0, 2}}},
		{"units so large that a worker would have too few tiles", []Launch{images, tiled(16, 3, 0, 0, Out(x), In(z))}, [][2]int{{0, 1}, {1, 2}}},
		{"a filter made ready", []Launch{images, ready(1, Out(x), In(z), In(few))}, [][2]int{{0, 2}}},
		{"a filter of the launch before", []Launch{elements(Out(few), In(x)), ready(1, Out(z), In(y), In(few))}, [][2]int{{0, 1}, {1, 2}}},
		{"a filter that the next launch changes", []Launch{ready(1, Out(z), In(y), In(few)), summed(Out(few), In(z))}, [][2]int{{0, 2}}},
		{"what is written early", []Launch{ready(1, Out(y), In(x)), ready(1, Out(z), In(y))}, [][2]int{{0, 2}}},
		{"large filters", []Launch{ready(1, Out(y), In(x), In(filter)), ready(1, Out(z), In(y), In(other))}, [][2]int{{0, 1}, {1, 2}}},
		{"a large filter and what follows it", []Launch{ready(1, Out(y), In(x), In(filter)), images}, [][2]int{{0, 2}}},
		{"tiles that no cache holds", []Launch{huge, huge}, [][2]int{{0, 1}, {1, 2}}},
		{"scalars are arguments, too", []Launch{elements(Out(y), In(x), Int(3)), elements(Out(z), In(y), Int(4))}, [][2]int{{0, 2}}},
		{"the same memory again", []Launch{elements(Out(y), In(x)), elements(Out(reused), In(y))}, [][2]int{{0, 2}}},
		{"memory that others read", []Launch{elements(Out(y), In(x)), elements(Out(shifted), In(z))}, [][2]int{{0, 1}, {1, 2}}},
		{"elements of another size", []Launch{elements(Out(y), In(x)), elements(Out(wider), In(z))}, [][2]int{{0, 1}, {1, 2}}},
		{"the same place of another arena", []Launch{elements(Out(y), In(x)), elements(Out(z), In(elsewhere))}, [][2]int{{0, 2}}},
		{"what all tiles need", []Launch{elements(Out(few), In(x)), elements(Out(z), In(y), In(few))}, [][2]int{{0, 1}, {1, 2}}},
		{"what all tiles read", []Launch{elements(Out(y), In(x), In(few)), elements(Out(z), In(y), In(few))}, [][2]int{{0, 2}}},
		{"a sum between", []Launch{elements(Out(y), In(x)), summed(Out(few), In(y)), elements(Out(z), In(y))}, [][2]int{{0, 3}}},
		{"a sum that is used", []Launch{summed(Out(few), In(x)), elements(Out(z), In(y), In(few))}, [][2]int{{0, 1}, {1, 2}}},
		{"a sum where others wrote", []Launch{elements(Out(y), In(x)), summed(Out(reused), In(y))}, [][2]int{{0, 2}}},
		{"sums of parts", []Launch{images, inParts([]int{0, 4, 8, 12, 16}, Out(few), In(z))}, [][2]int{{0, 2}}},
		{"sums of the same parts", []Launch{inParts([]int{0, 8, 16}, Out(few), In(z)), inParts([]int{0, 8, 16}, Out(filter), In(y))}, [][2]int{{0, 2}}},
		{"sums of other parts", []Launch{inParts([]int{0, 8, 16}, Out(few), In(z)), inParts([]int{0, 4, 8, 12, 16}, Out(filter), In(y))}, [][2]int{{0, 1}, {1, 2}}},
		{"parts of which a worker would have most", []Launch{images, inParts([]int{0, 10, 16}, Out(few), In(z))}, [][2]int{{0, 1}, {1, 2}}},
		{"parts that begin within a turn", []Launch{alignedRows(64, 3, Out(z), In(y)), inParts([]int{0, 4, 8, 12, 16}, Out(few), In(z))}, [][2]int{{0, 1}, {1, 2}}},
		{"parts that begin with a turn", []Launch{alignedRows(64, 16, Out(z), In(y)), inParts([]int{0, 4, 8, 12, 16}, Out(few), In(z))}, [][2]int{{0, 2}}},
		{"parts with another unit", []Launch{tiled(16, 3, 0, 0, Out(z), In(y)), inParts([]int{0, 4, 8, 12, 16}, Out(few), In(z))}, [][2]int{{0, 2}}},
		{"others where a sum is written", []Launch{summed(Out(y), In(x)), elements(Out(y), In(z))}, [][2]int{{0, 1}, {1, 2}}},
	} {
		var got [][2]int
		for _, s := range fuseLaunches(c.launches, 2) {
			got = append(got, [2]int{s.from, s.to})
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: stages %v, want %v", c.name, got, c.want)
		}
	}
}

// TestLocalBuffers: exactly the buffers that are written and used only within one fused stage live
// in the workers' memory, and those in use at the same time do not overlap.
func TestLocalBuffers(t *testing.T) {
	at := func(i int) *Buffer { return placed(string(rune('a'+i)), Scratch, Float32, large, 4*large*i) }
	a, b, c, d, e := at(0), at(1), at(2), at(3), at(4)
	kept, few := placed("kept", Chain, Float32, large, 0), placed("few", Scratch, Float32, 4, 4*large*5)
	outside := Launch{Arguments: []Argument{Out(a)}}
	launches := []Launch{
		outside,                    // a comes from elsewhere
		elements(Out(b), In(a)),    // b is local
		elements(Out(c), In(b)),    // c is also used elsewhere
		elements(InOut(d), In(c)),  // d has no value before
		elements(Out(e), In(b)),    // e is local, while b is in use
		elements(Out(kept), In(e)), // kept is kept
		summed(Out(few), In(e)),    // few is written after all tiles
		{Arguments: []Argument{In(c)}},
	}
	stages := fuseLaunches(launches, 2)
	if len(stages) != 3 || stages[1].from != 1 || stages[1].to != 7 {
		t.Fatalf("stages %+v, want launches 1 to 6 together", stages)
	}
	s := stages[1]
	tile := 4 * (s.tiles[1] - s.tiles[0])
	if s.localBytes != 2*tile {
		t.Errorf("%d bytes are local, want two tiles of %d", s.localBytes, tile)
	}
	places := map[*Buffer]int{}
	for i, launch := range launches[s.from:s.to] {
		for j, argument := range launch.Arguments {
			if was, seen := places[argument.Buffer]; seen && was != s.localOffsets[i][j] {
				t.Errorf("%s lies at %d, then at %d", argument.Buffer.Name, was, s.localOffsets[i][j])
			}
			places[argument.Buffer] = s.localOffsets[i][j]
		}
	}
	for _, buffer := range []*Buffer{a, c, d, kept, few} {
		if places[buffer] != -1 {
			t.Errorf("%s lies at %d of the workers' memory", buffer.Name, places[buffer])
		}
	}
	if min(places[b], places[e]) != 0 || max(places[b], places[e]) != tile {
		t.Errorf("b lies at %d, e at %d, want 0 and %d", places[b], places[e], tile)
	}
}

// TestStagesRun: fused launches compute the same as unfused ones, each with a workspace of its own.
func TestStagesRun(t *testing.T) {
	const rows, width = 25, 983
	const n = rows * width
	u, v := placed("u", Scratch, Float64, n, 0), placed("v", Scratch, Float64, n, Align(8*n))
	total, square := placed("total", Chain, Float64, 1, 0), placed("square", Chain, Float64, 1, Alignment)
	numbers := placed("numbers", Shared, Float64, n, 0)
	fill := RowTiles(n, 1, 1, func(a *Args, lo, hi int) { copy(Slice[float64](a, 0)[lo:hi], Slice[float64](a, 1)[lo:hi]) })
	next := RowTiles(n, 1, 1, func(a *Args, lo, hi int) {
		for i := lo; i < hi; i++ {
			Slice[float64](a, 0)[i] = Slice[float64](a, 1)[i] + 1
		}
	})
	sum := RowTiles(rows, 1, width, func(a *Args, lo, hi int) {
		parts := Workspace[float64](a)
		for row := lo; row < hi; row++ {
			parts[row] = 0
			for _, x := range Slice[float64](a, 1)[row*width : (row+1)*width] {
				parts[row] += x
			}
		}
	})
	sum.Workspace = 8 * rows
	sum.Phases = append(sum.Phases, Single(func(a *Args) {
		for _, part := range Workspace[float64](a)[:rows] {
			Slice[float64](a, 0)[0] += part
		}
	}).Phases...)
	w := Workload{Launches: []Launch{
		{Kernel: "fill", Arguments: []Argument{Out(u), In(numbers)}, Host: fill},
		{Kernel: "sum", Arguments: []Argument{InOut(total), In(u)}, Host: sum},
		{Kernel: "next", Arguments: []Argument{Out(v), In(u)}, Host: next},
		{Kernel: "sum", Arguments: []Argument{InOut(square), In(v)}, Host: sum},
	}}
	w.Bytes[Shared], w.Bytes[Scratch], w.Bytes[Chain] = Align(8*n), 2*Align(8*n), 2*Alignment
	if stages := fuseLaunches(w.Launches, 3); len(stages) != 1 || len(stages[0].tiles) < 5 || stages[0].localBytes == 0 {
		t.Fatalf("stages %v, want one of several tiles, with local buffers", stages)
	}
	var raw []byte
	for i := range n {
		raw = binary.NativeEndian.AppendUint64(raw, math.Float64bits(float64(i)))
	}
	for _, threads := range []int{1, 3} {
		for _, chains := range []int{1, 4} {
			w.Chains = chains
			host := NewHost(threads)
			r, err := host.Load(w)
			if err != nil {
				t.Fatal(err)
			}
			if err := errors.Join(r.Write(numbers, 0, 0, raw), r.Run(2)); err != nil {
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

// readOne reads a buffer of one float64.
func readOne(t *testing.T, r Runner, b *Buffer, chain int) float64 {
	t.Helper()
	var raw [8]byte
	if err := r.Read(b, chain, 0, raw[:]); err != nil {
		t.Fatal(err)
	}
	return math.Float64frombits(binary.NativeEndian.Uint64(raw[:]))
}

func TestEvenStrips(t *testing.T) {
	for _, c := range []struct{ rows, unit, largest, workers, tile int }{
		{100, 1, 10, 2, 10},
		{100, 6, 12, 2, 6},  // nine tiles of twelve would give one worker 60
		{100, 3, 20, 1, 18}, // one worker runs everything in any case
		{7, 3, 1, 2, 3},     // at least one unit
		{64, 1, 100, 4, 16}, // one tile per worker
		{1000, 1, 300, 3, 167},
	} {
		if tile := evenTile(c.rows, c.unit, c.largest, c.workers); tile != c.tile {
			t.Errorf("evenTile for %+v = %d", c, tile)
		}
	}
}
