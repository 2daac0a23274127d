package datasets

import (
	"bytes"
	"encoding/csv"
	"math"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// The images are the same on every machine and in every version; changing them makes a new data set
// and must be intended.
func TestGlyphsGolden(t *testing.T) {
	want := [2]string{
		Train: "d7dd917070ade27b3222202d1367aeb7a83879396db1140ef7701456a1ae52e4",
		Test:  "baa71a8643660d0ba013ed4e316e6d68ab1b5be00007ae5ca0b7fb5f78b0e204",
	}
	for _, split := range []Split{Train, Test} {
		d, err := Load("glyphs", split, Options{})
		if err != nil {
			t.Fatal(err)
		}
		if sum := sha256Hex(d.Images); sum != want[split] || d.Hashes["images"] != sum {
			t.Errorf("%v: images have SHA-256 %s, want %s", split, sum, want[split])
		}
		each := glyphCounts[split] / 10
		if diff := cmp.Diff([]int{each, each, each, each, each, each, each, each, each, each}, d.Counts()); diff != "" {
			t.Errorf("%v: counts: %s", split, diff)
		}
		if !slices.Equal(d.Labels[:12], []int32{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 0, 1}) {
			t.Errorf("%v: labels begin %v", split, d.Labels[:12])
		}
		if split == Train {
			wantMoments(t, d)
		}
		wantLikeNotMNIST(t, d)
	}
}

// wantLikeNotMNIST compares statistics with notMNIST's 10 000 test images: mean .427, deviation
// .459, and the classes' means.
func wantLikeNotMNIST(t *testing.T, d *Dataset) {
	t.Helper()
	means, stds := moments(d.Images, 1, len(d.Images))
	mean, std := means[0], stds[0]
	if math.Abs(mean-.427) > .01 || math.Abs(std-.459) > .01 {
		t.Errorf("mean %.3f, deviation %.3f, want .427, .459 as notMNIST has", mean, std)
	}
	classMeans := []float64{.365, .501, .364, .450, .441, .386, .409, .439, .565, .347}
	ink := make([]float64, 10)
	for i, label := range d.Labels {
		top, bottom, left, right := false, false, false, false
		for p, pixel := range d.Image(i) {
			ink[label] += float64(pixel) / 255 / float64(d.Len()/10*d.ImageSize())
			if pixel > 32 { // hairlines stay far below the full shade
				top, bottom = top || p/28 < 2, bottom || p/28 > 25
				left, right = left || p%28 < 2, right || p%28 > 25
			}
		}
		if !top || !bottom || !left || !right {
			t.Errorf("image %d, a %s, does not fill the image: top %v, bottom %v, left %v, right %v",
				i, d.ClassNames[label], top, bottom, left, right)
		}
	}
	for class, got := range ink {
		if math.Abs(got-classMeans[class]) > .065 {
			t.Errorf("the %s have mean %.3f, want %.3f as in notMNIST", d.ClassNames[class], got, classMeans[class])
		}
	}
}

func TestGlyphsDesigns(t *testing.T) {
	table := csv.NewReader(bytes.NewReader(lettersCSV))
	table.Comment = '#'
	rows, err := table.ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	splits := map[string]string{}
	faces := map[string]bool{}
	for _, row := range rows[1:] {
		if other, ok := splits[row[1]]; ok && other != row[0] {
			t.Errorf("design %s is in both splits", row[1])
		}
		splits[row[1]] = row[0]
		if face := row[3] + row[4]; faces[face] {
			t.Errorf("face %s is there twice", face)
		} else {
			faces[face] = true
		}
	}
	for _, split := range []Split{Train, Test} {
		designs, err := readDesigns(split)
		if err != nil {
			t.Fatal(err)
		}
		if len(designs) < 14 {
			t.Errorf("%v: %d designs, want 14 or more", split, len(designs))
		}
	}
}

// Any run of images has the designs in the shares of their weights.
func TestSpread(t *testing.T) {
	designs := []glyphDesign{{weight: 5}, {weight: 1}, {weight: 2}}
	order := spread(designs, 8*31)
	for from := 0; from+8 <= len(order); from += 8 {
		got := make([]int, len(designs))
		for _, i := range order[from : from+8] {
			got[i]++
		}
		if diff := cmp.Diff([]int{5, 1, 2}, got); diff != "" {
			t.Fatalf("turns from %d: %s", from, diff)
		}
	}
}

// cell fills a letter's cell from a distance in pixels, with (0, 0) in its
// middle.
func cell(distance func(x, y float64) float64) letter {
	pixels := make([]byte, cellSide*cellSide)
	for i := range pixels {
		d := distance(float64(i%cellSide)+.5-cellSide/2, float64(i/cellSide)+.5-cellSide/2)
		pixels[i] = byte(min(max(math.Round(distanceZero+16*d), 0), 255))
	}
	return letter{pixels, cellSide}
}

// Shapes that fill the cell's inner square are drawn where geometry requires.
func TestDraw(t *testing.T) {
	disc := cell(func(x, y float64) float64 { return 28 - math.Hypot(x, y) })
	square := cell(func(x, y float64) float64 { return 28 - max(math.Abs(x), math.Abs(y)) })
	one := [4]int{outputPixel, outputPixel, outputPixel, outputPixel}
	for _, test := range []struct {
		name      string
		letter    letter
		variation variation
		ink       func(x, y float64) bool // in the image's pixels from its middle
	}{
		{"disc", disc, variation{}, func(x, y float64) bool { return math.Hypot(x, y) < 14 }},
		{"bolder disc", disc, variation{bolder: outputPixel}, func(x, y float64) bool { return math.Hypot(x, y) < 14 }},
		{"disc with margins", disc, variation{margins: one}, func(x, y float64) bool { return math.Hypot(x, y) < 13 }},
		{"disc with margin above", disc, variation{margins: [4]int{2 * outputPixel, 0, 0, 0}}, func(x, y float64) bool {
			return math.Hypot(x, (y-1)*14/13) < 14
		}},
		{"disc with margin to the right", disc, variation{margins: [4]int{0, 0, 0, 2 * outputPixel}}, func(x, y float64) bool {
			return math.Hypot((x+1)*14/13, y) < 14
		}},
		{"hollow disc", disc, variation{hollow: 2 * outputPixel}, func(x, y float64) bool {
			return math.Hypot(x, y) < 14 && math.Hypot(x, y) > 12
		}},
		{"square", square, variation{}, func(x, y float64) bool { return true }},
		// The slant widens the ink from 56 to 70 pixels of the cell.
		{"slanted square", square, variation{slant: 64}, func(x, y float64) bool { return math.Abs(x*70/56+y/4) < 14 }},
	} {
		pixels := make([]byte, knownSide*knownSide)
		test.variation.draw(test.letter, pixels)
		for i, got := range pixels {
			const side, half = 16, knownSide / 2
			shade := 0.0
			for p := range side * side {
				x, y := float64(i%knownSide)+(float64(p%side)+.5)/side, float64(i/knownSide)+(float64(p/side)+.5)/side
				if test.ink(x-half, y-half) {
					shade += 255. / (side * side)
				}
			}
			// The edge of a slant is a little softer than it should be.
			if math.Abs(float64(got)-shade) > 32 {
				t.Errorf("%s: pixel (%d, %d) is %d, want %.0f", test.name, i%knownSide, i/knownSide, got, shade)
			}
		}
	}
}
