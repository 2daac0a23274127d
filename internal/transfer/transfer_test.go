package transfer

import (
	"bytes"
	"slices"
	"testing"
)

// pool has images of random pixels.
func pool(n int) Pool {
	const size = 6 * 6
	images := make([]byte, n*size)
	for i := range images {
		images[i] = byte(i * i % 251)
	}
	return Pool{Channels: 1, Height: 6, Width: 6, Len: n, Image: func(i int) []byte { return images[i*size : (i+1)*size] }}
}

// The first pass over the images has each of them once, unchanged; copies depend on nothing but the
// seed and their number; changed images differ from all others.
func TestCopy(t *testing.T) {
	const all, n, size = 85, 60, 6 * 6
	p := pool(all)
	known := map[string]int{}
	for i := range all {
		known[string(p.Image(i))]++
	}
	first, second := p.Copy(n, 0, 1), p.Copy(n, 1, 1)
	both := slices.Concat(first, second)
	for i := range all {
		image := string(both[i*size : (i+1)*size])
		if known[image] == 0 {
			t.Fatalf("image %d of the first pass is changed, or there twice", i)
		}
		known[image]--
	}
	for i := all; i < 2*n; i++ {
		if _, has := known[string(both[i*size:(i+1)*size])]; has {
			t.Errorf("image %d, of the second pass, is unchanged", i)
		}
	}
	if !bytes.Equal(second, p.Copy(n, 1, 1)) || bytes.Equal(second, p.Copy(n, 1, 2)) {
		t.Error("a copy must depend on the seed, and on nothing else")
	}
}

// An affine map keeps a constant image, and the mean of a smooth one nearly so.
func TestWarp(t *testing.T) {
	c := changer{Pool: Pool{Channels: 2, Height: 9, Width: 12}}
	flat := bytes.Repeat([]byte{77}, 2*9*12)
	to := make([]byte, len(flat))
	c.address.Step = 3
	c.warp(flat, to)
	if !bytes.Equal(flat, to) {
		t.Errorf("a constant image is %v", to)
	}
	ramp := make([]byte, len(flat))
	for i := range ramp {
		ramp[i] = byte(20 * (i % 12))
	}
	c.warp(ramp, to)
	if bytes.Equal(ramp, to) {
		t.Error("a ramp is unchanged")
	}
	for y := range 9 {
		row := to[y*12 : (y+1)*12]
		if !slices.IsSorted(row) {
			t.Errorf("row %d of a ramp is %v, want it to rise: the map turns by at most 20 degrees", y, row)
		}
	}
}
