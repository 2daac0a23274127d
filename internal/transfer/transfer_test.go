package transfer

import (
	"bytes"
	"math"
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

// The first pass over the images has each of them once, unchanged. Copies depend only on the seed
// and their number, and changed images differ from all others.
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
	c.warp(flat, to, strongly)
	if !bytes.Equal(flat, to) {
		t.Errorf("a constant image is %v", to)
	}
	ramp := make([]byte, len(flat))
	for i := range ramp {
		ramp[i] = byte(20 * (i % 12))
	}
	c.warp(ramp, to, strongly)
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

// Blended images keep at least half of the first one.
func TestBlend(t *testing.T) {
	c := changer{Pool: Pool{Channels: 1, Height: 1, Width: 2}, other: []byte{200, 0}}
	for step := range uint64(50) {
		c.address.Step, c.used = step, 0
		image := []byte{100, 100}
		c.blend(image)
		if image[0] < 100 || image[0] > 150 || image[1] < 50 || image[1] > 100 || int(image[0])+int(image[1]) != 200 {
			t.Fatalf("100 blended with 200 and 0 is %v", image)
		}
	}
}

// Drawn images differ from each other, and about half of them have a black background.
func TestDraw(t *testing.T) {
	for name, draw := range map[string]func(c *changer, to []byte){"waves": (*changer).drawWaves, "figures": (*changer).drawFigures} {
		t.Run(name, func(t *testing.T) {
			const side = 28
			c := &changer{Pool: Pool{Channels: 1, Height: side, Width: side}}
			seen, dark := map[string]bool{}, 0
			const images = 60
			for step := range uint64(images) {
				c.address.Step, c.used = step, 0
				to := make([]byte, side*side)
				draw(c, to)
				seen[string(to)] = true
				if slices.Min(to) < 8 {
					dark++
				}
			}
			if len(seen) != images || dark < images/4 {
				t.Errorf("%d of %d images differ, and %d have dark parts", len(seen), images, dark)
			}
			var rgb [3 * 81]byte
			c = &changer{Pool: Pool{Channels: 3, Height: 9, Width: 9}}
			draw(c, rgb[:])
			if bytes.Equal(rgb[:81], rgb[81:162]) {
				t.Error("channels do not differ in their colours")
			}
		})
	}
}

// A figure's distance is negative within it, and is measured from its outline if it has one.
func TestFigure(t *testing.T) {
	turned := figure{y: 10, x: 20, sin: 1, length: 5, width: 2} // its length is vertical
	outlined, ellipse := turned, turned
	outlined.line, ellipse.round = 0.5, true
	for _, row := range []struct {
		name       string
		of         figure
		y, x, want float64
	}{
		{"centre", turned, 10, 20, -2}, {"above", turned, 4, 20, 1}, {"end", turned, 14, 20, -1}, {"right", turned, 10, 24, 2},
		{"centre of an outline", outlined, 10, 20, 1.5}, {"outline", outlined, 10, 22, -0.5},
		{"centre of an ellipse", ellipse, 10, 20, -2}, {"tip of an ellipse", ellipse, 15, 20, 0}, {"corner of an ellipse", ellipse, 14, 21.6, 0.263},
	} {
		if got := row.of.distance(row.y, row.x); math.Abs(got-row.want) > 1e-3 {
			t.Errorf("%s: %v, want %v", row.name, got, row.want)
		}
	}
}

// The fractions of changed images that are drawn and blended match the constants: a warp changes an
// image of one grey level only if it is blended with another or drawn.
func TestFractions(t *testing.T) {
	const n, side = 4000, 4
	p := Pool{Channels: 1, Height: side, Width: side, Len: n, Image: func(int) []byte { return bytes.Repeat([]byte{90}, side*side) }}
	images, different := p.Copy(n, 1, 7), 0
	for i := range n {
		if !bytes.Equal(images[i*side*side:(i+1)*side*side], p.Image(0)) {
			different++
		}
	}
	const drawn = waves + figures
	if got := float64(different) / n; got < drawn-0.03 || got > drawn+0.03 {
		t.Errorf("%.3f of the images are drawn, want %v", got, drawn)
	}
}
