package tensor

import (
	"encoding/binary"
	"errors"
	"math"
	"slices"
	"testing"
)

const (
	testImages = 9
	testPlanes = 7
	testWidth  = 30001 // of a plane: seven planes exceed blockBytes and take two blocks
)

// byImages returns a launch whose rows are images. compute computes planes [lo, hi) of one image;
// its slices have only these of the arguments that have planes.
func byImages(planes Planes, compute func(a *Args, lo, hi int), arguments ...Argument) Launch {
	rows := func(a *Args, n int, _ bool) {
		if n != 1 {
			panic("a tile is not an image")
		}
		compute(a, 0, testPlanes)
	}
	h := HostKernel{Planes: planes, RowTile: RowTile{
		Rows: testImages, Unit: 1, Run: rows,
		Owns: func(i int, b *Buffer) bool { return b.Elements%testImages == 0 },
	}}
	h.Phases = []Phase{{Tiles: testImages, Run: func(a *Args, image int) { h.RowTile.Handle(a, image, image+1) }}}
	if planes.Count > 0 {
		h.Planes.Run = compute
	}
	return Launch{Kernel: "test", Arguments: arguments, Host: h}
}

// planesWorkload widens images to several planes, changes these plane by plane, and adds them up.
// The changed planes are at offset changedAt of the Scratch arena.
func planesWorkload(changedAt int) (w Workload, numbers, sums *Buffer) {
	const image = 4 * testImages * testWidth
	numbers = placed("numbers", Shared, Float32, testImages*testWidth, 0)
	sums = placed("sums", Chain, Float32, testImages*testWidth, 0)
	x := placed("x", Scratch, Float32, testImages*testWidth, 0)
	wide := placed("wide", Scratch, Float32, testImages*testPlanes*testWidth, Align(image))
	changed := placed("changed", Scratch, Float32, testImages*testPlanes*testWidth, changedAt)
	fill := func(a *Args, _, _ int) { copy(Slice[float32](a, 0), Slice[float32](a, 1)) }
	widen := func(a *Args, lo, hi int) {
		for p := lo; p < hi; p++ {
			for i, v := range Slice[float32](a, 1) {
				Slice[float32](a, 0)[(p-lo)*testWidth+i] = v + float32(p)
			}
		}
	}
	change := func(a *Args, lo, hi int) {
		for p := lo; p < hi; p++ {
			for i := range testWidth {
				at := (p-lo)*testWidth + i
				Slice[float32](a, 0)[at] = Slice[float32](a, 1)[at] * float32(p+1)
			}
		}
	}
	add := func(a *Args, _, _ int) {
		clear(Slice[float32](a, 0))
		for p := range testPlanes {
			for i := range testWidth {
				Slice[float32](a, 0)[i] += Slice[float32](a, 1)[p*testWidth+i]
			}
		}
	}
	w = Workload{Chains: 1, Launches: []Launch{
		byImages(Planes{}, fill, Out(x), In(numbers)),
		byImages(Planes{Count: testPlanes}, widen, Out(wide), In(x)),
		byImages(Planes{Count: testPlanes, Input: 1}, change, Out(changed), In(wide)),
		byImages(Planes{}, add, Out(sums), In(changed)),
	}}
	w.Bytes = [...]int{Shared: Align(image), Chain: Align(image), Scratch: Align(image) + 2*Align(testPlanes*image)}
	return w, numbers, sums
}

// Two launches that alternate, a few planes at a time, compute the same as one after the other.
func TestPlanes(t *testing.T) {
	const image = 4 * testImages * testWidth
	w, numbers, sums := planesWorkload(Align(image) + Align(testPlanes*image))
	stages := fuseLaunches(w.Launches, 2)
	if len(stages) != 1 || !slices.Equal(stages[0].blocks, []int{0, 4, 0, 0}) {
		t.Fatalf("stages %+v, want one in which launches 1 and 2 alternate, four planes at a time", stages)
	}
	if most := Align(4*4*testWidth) + Align(4*testPlanes*testWidth) + 2*Align(4*testWidth); stages[0].localBytes > most {
		t.Errorf("%d bytes are local, want at most %d: four planes of one buffer, seven of another", stages[0].localBytes, most)
	}
	var raw []byte
	for i := range testImages * testWidth {
		raw = binary.NativeEndian.AppendUint32(raw, math.Float32bits(float32(i)))
	}
	for _, threads := range []int{1, 2} {
		host := NewHost(threads)
		r, err := host.Load(w)
		if err != nil {
			t.Fatal(err)
		}
		got := make([]byte, len(raw))
		if err := errors.Join(r.Write(numbers, 0, 0, raw), r.Run(1), r.Read(sums, 0, 0, got), r.Close(), host.Close()); err != nil {
			t.Fatal(err)
		}
		for i := range testImages * testWidth {
			want := float32(0)
			for p := range testPlanes {
				want += (float32(i) + float32(p)) * float32(p+1)
			}
			if v := math.Float32frombits(binary.NativeEndian.Uint32(got[4*i:])); v != want {
				t.Fatalf("%d threads: element %d is %v, want %v", threads, i, v, want)
			}
		}
	}
}

// Launches do not alternate if the second one would overwrite what the first one still reads.
func TestPlanesThatOverlap(t *testing.T) {
	w, _, _ := planesWorkload(0) // where x is
	for _, s := range fuseLaunches(w.Launches, 2) {
		if len(s.blocks) > 0 && slices.Max(s.blocks) > 0 {
			t.Errorf("launches %d to %d alternate: %v", s.from, s.to, s.blocks)
		}
	}
}
