package datasets

import (
	"bytes"
	"image"
	"image/jpeg"
	"math/bits"
	"testing"
	"time"

	"github.com/pollen-ml/pollen/internal/testenv"
)

// TestNearCopiesMeasured logs the figures of docs/splits.md: near copies in data that have few, the
// time for them and exact copies, and the fraction of images saved again as JPEG that are found.
func TestNearCopiesMeasured(t *testing.T) {
	testenv.NeedsAll(t, "searches whole data sets")
	for _, name := range []string{"mnist", "fashion-mnist", "glyphs"} {
		splits, err := Open(name, Options{})
		if err != nil {
			t.Logf("%s: %v", name, err)
			continue
		}
		begin := time.Now()
		exactDuplicates(splits)
		pairs := nearCopies(splits)
		took := time.Since(begin)
		same := 0
		for _, pair := range pairs {
			if pair[0].class() == pair[1].class() {
				same++
			}
		}
		t.Logf("%s: %d near copies, %d of the same class, among %d images in %v", name, len(pairs), same, splits.Train.Len()+splits.Test.Len(), took)
		for _, quality := range []int{90, 75} {
			found := 0
			for i := range 500 {
				found += foundAsJPEG(t, splits.Train, i, quality)
			}
			t.Logf("%s: %d of 500 found as JPEG of quality %d", name, found, quality)
		}
		part := Splits{}
		if part.Train, err = splits.Train.First(15000); err != nil {
			t.Fatal(err)
		}
		if part.Test, err = splits.Test.First(5000); err != nil {
			t.Fatal(err)
		}
		begin = time.Now()
		if err := (Options{}).checkDuplicates(&part); err != nil {
			t.Fatal(err)
		}
		if took = time.Since(begin); took > 3*time.Second {
			t.Errorf("%s: 20000 images took %v, want at most 3 s", name, took)
		}
		t.Logf("%s: 20000 images in %v", name, took)
	}
}

// foundAsJPEG returns 1 if a grey image is nearly the same as itself saved as JPEG, or else 0.
func foundAsJPEG(t *testing.T, d *Dataset, i, quality int) int {
	t.Helper()
	grey := image.NewGray(image.Rect(0, 0, d.Width, d.Height))
	copy(grey.Pix, d.Image(i))
	var b bytes.Buffer
	if err := jpeg.Encode(&b, grey, &jpeg.Options{Quality: quality}); err != nil {
		t.Fatal(err)
	}
	lossy := &Dataset{Name: "lossy", Channels: 1, Height: d.Height, Width: d.Width}
	var err error
	if lossy.Images, err = Decode(t.Context(), b.Bytes(), Options{Channels: 1, Height: d.Height, Width: d.Width}); err != nil {
		t.Fatal(err)
	}
	one, err := d.Slice(i, i+1)
	if err != nil {
		t.Fatal(err)
	}
	all := sketches(&Splits{Train: one, Test: lossy})
	if len(all) == 2 && bits.OnesCount64(all[0].hash^all[1].hash) <= nearBits && nearlySame(&all[0], &all[1], map[place][]byte{}) {
		return 1
	}
	return 0
}
