package datasets

import (
	"bytes"
	"image"
	"image/color"
	"image/draw"
	"image/png"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// developmentData is where a development tree may have data sets that do not
// come with the code.
var developmentData = filepath.Join("..", "..", "shared", "data")

func TestNotMNIST(t *testing.T) {
	options := isolated(t)
	options.Dir = developmentData
	if !notMNIST().holds(filepath.Join(developmentData, "notmnist"), Test) {
		t.Skipf("no notMNIST in %s", developmentData)
	}
	d, err := Load("notmnist", Test, options)
	if err != nil {
		t.Fatal(err)
	}
	want := []int{1000, 1000, 1000, 1000, 1000, 1000, 1000, 1000, 1000, 1000}
	if diff := cmp.Diff(want, d.Counts()); diff != "" {
		t.Error("counts:", diff)
	}
	for name, hash := range d.Hashes {
		files := notMNIST().files[Test]
		if hash != files.images.packed && hash != files.labels.packed {
			t.Errorf("%s has SHA-256 %s, not that of the published file", name, hash)
		}
	}
	wantMoments(t, d)
}

// encoded returns a picture as PNG.
func encoded(t testing.TB, img image.Image) []byte {
	t.Helper()
	var buffer bytes.Buffer
	if err := png.Encode(&buffer, img); err != nil {
		t.Fatal(err)
	}
	return buffer.Bytes()
}

// greyPicture returns a picture whose pixels count up from first.
func greyPicture(width, height int, first byte) *image.Gray {
	img := image.NewGray(image.Rect(0, 0, width, height))
	for i := range img.Pix {
		img.Pix[i] = first + byte(i)
	}
	return img
}

func TestNotMNISTDirs(t *testing.T) {
	options := isolated(t)
	options.Dir = t.TempDir()
	small := filepath.Join(options.Dir, "notMNIST_small")
	for class, letter := range letterNames {
		write(t, encoded(t, greyPicture(28, 28, byte(class))), small, letter, "a.png")
	}
	coloured := image.NewRGBA(image.Rect(0, 0, 28, 28))
	draw.Draw(coloured, coloured.Rect, image.Black, image.Point{}, draw.Src)
	coloured.Set(3, 2, color.White)
	write(t, encoded(t, coloured), small, "B", "coloured.PNG")
	write(t, nil, small, "A", "empty.png")
	write(t, encoded(t, greyPicture(28, 27, 0)), small, "F", "low.png")
	write(t, encoded(t, greyPicture(28, 28, 0))[:80], small, "F", "cut.png")
	write(t, []byte("not a letter"), small, "F", "notes.txt")

	d, err := Load("notmnist", Test, options)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(d.Labels, []int32{0, 1, 1, 2, 3, 4, 5, 6, 7, 8, 9}) {
		t.Errorf("labels are %v", d.Labels)
	}
	if !bytes.Equal(d.Image(10), greyPicture(28, 28, 9).Pix) {
		t.Error("the J is another image")
	}
	want := make([]byte, 28*28)
	want[2*28+3] = 255
	if !bytes.Equal(d.Image(2), want) {
		t.Error("the coloured B is another image")
	}
	if len(d.Skipped) != 3 || !strings.HasPrefix(d.Skipped[0], "A/empty.png: ") ||
		!strings.HasPrefix(d.Skipped[1], "F/cut.png: ") || d.Skipped[2] != "F/low.png: must have 28x28 pixels, got 27x28" {
		t.Errorf("skipped %q", d.Skipped)
	}
	if len(d.Hashes["notMNIST_small/*/*.png"]) != 64 || d.Place != small {
		t.Errorf("hashes %v, place %q", d.Hashes, d.Place)
	}
	wantMoments(t, d)
	small32 := options
	small32.Channels, small32.Height, small32.Width, small32.Classes = 3, 32, 32, []string{"B", "J"}
	if d, err = Load("notmnist", Test, small32); err != nil {
		t.Fatal(err)
	}
	if d.Len() != 3 || d.Classes != 2 || len(d.Images) != 3*3*32*32 {
		t.Errorf("two letters in colour are %d images of %d classes in %d bytes", d.Len(), d.Classes, len(d.Images))
	}
	wantMoments(t, d)

	// The small set has test images only, also when it is named itself.
	_, err = Load("notmnist", Train, options)
	wantError(t, err, "notmnist: must have train images, found none", "notMNIST_large")
	options.Dir = small
	if d, err = Load("notmnist", Test, options); err != nil || d.Len() != 11 {
		t.Errorf("the folder of letters itself: %v", err)
	}

	// A changed file changes the hash.
	before := d.Hashes["notMNIST_small/*/*.png"]
	write(t, encoded(t, greyPicture(28, 28, 77)), small, "J", "a.png")
	if d, err = Load("notmnist", Test, options); err != nil || d.Hashes["notMNIST_small/*/*.png"] == before {
		t.Errorf("changed file: same hash, or %v", err)
	}
}

func TestNotMNISTAllUnreadable(t *testing.T) {
	options := isolated(t)
	options.Dir = t.TempDir()
	for _, letter := range letterNames {
		write(t, []byte("broken"), options.Dir, "notMNIST_large", letter, "a.png")
	}
	_, err := Load("notmnist", Train, options)
	wantError(t, err, filepath.Join("notMNIST_large", "A")+": must have a readable .png file", "skipped 1 so far: A/a.png: ")
}
