package strange

import (
	"bytes"
	"slices"
	"testing"

	"github.com/pollen-ml/pollen/datasets"
)

// own returns images whose pixels count up.
func own(t *testing.T, channels, height, width int) *datasets.Dataset {
	t.Helper()
	pixels := make([]byte, 4*channels*height*width)
	for i := range pixels {
		pixels[i] = byte(i + 13*(i/(channels*height*width)))
	}
	d, err := datasets.New("own", pixels, []int32{0, 1, 0, 1}, channels, height, width, nil)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// TestImages: 600 images, the same each time, and hardly two the same.
func TestImages(t *testing.T) {
	for _, shape := range [][3]int{{1, 28, 28}, {3, 32, 24}, {4, 9, 7}, {3, 3, 1}} {
		d := own(t, shape[0], shape[1], shape[2])
		kinds, err := Images(d)
		if err != nil {
			t.Fatal(err)
		}
		again, err := Images(d)
		if err != nil {
			t.Fatal(err)
		}
		total, size := 0, d.ImageSize()
		for i, k := range kinds {
			if !bytes.Equal(k.Images, again[i].Images) || k.Name == "" {
				t.Errorf("%v: %q changes", shape, k.Name)
			}
			total += len(k.Images) / size
			var different []string
			for at := 0; at < len(k.Images); at += size {
				different = append(different, string(k.Images[at:at+size]))
			}
			slices.Sort(different)
			// Of own images there are four.
			if n := len(slices.Compact(different)); size > 100 && (n < 4 || k.Name == "noise" && n < 60) {
				t.Errorf("%v: %s: only %d different images", shape, k.Name, n)
			}
		}
		if total != 600 {
			t.Errorf("%v: %d images, want 600", shape, total)
		}
	}
}

// TestImagesOfOwn checks that the changed images are what their names say.
func TestImagesOfOwn(t *testing.T) {
	d := own(t, 3, 8, 8)
	kinds, err := Images(d)
	if err != nil {
		t.Fatal(err)
	}
	first := map[string][]byte{}
	for _, k := range kinds {
		first[k.Name] = k.Images[:d.ImageSize()]
	}
	for i, v := range d.Image(0) {
		if got := first["own images inverted"][i]; got != 255-v {
			t.Fatalf("inverted pixel %d is %d, want %d", i, got, 255-v)
		}
	}
	for _, name := range []string{"own images with shuffled pixels", "own images with shuffled patches"} {
		got := first[name]
		if bytes.Equal(got, d.Image(0)) {
			t.Errorf("%s: not shuffled", name)
		}
		sorted := slices.Sorted(slices.Values(got[:64]))
		if !slices.Equal(sorted, slices.Sorted(slices.Values(d.Image(0)[:64]))) {
			t.Errorf("%s: other values than the first channel's", name)
		}
		// The channels stay together: each is 64 more than the one before.
		for i := range 64 {
			if got[64+i] != got[i]+64 {
				t.Fatalf("%s: pixel %d has other channels", name, i)
			}
		}
	}
	if patch := first["own images with shuffled patches"]; patch[1] != patch[0]+1 || patch[8] != patch[0]+8 {
		t.Error("patches do not stay whole")
	}
	if solid := first["solid colours"]; solid[0] != 0 || solid[len(solid)-1] != 0 {
		t.Error("the first colour is not black")
	}
}
