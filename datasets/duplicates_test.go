package datasets

import (
	"bytes"
	"fmt"
	"image"
	"image/color"
	"image/jpeg"
	"math"
	"math/bits"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/pkg/errors"
)

// scene draws a smooth random image in colour.
func scene(seed uint64, side int) *image.RGBA {
	r := rand.New(rand.NewPCG(seed, 1))
	img := image.NewRGBA(image.Rect(0, 0, side, side))
	var waves [3][4][3]float64
	for c := range waves {
		for w := range waves[c] {
			waves[c][w] = [3]float64{6 * r.NormFloat64(), 6 * r.NormFloat64(), 6 * r.Float64()}
		}
	}
	for y := range side {
		for x := range side {
			var values [3]uint8
			for c := range values {
				sum := 0.0
				for _, wave := range waves[c] {
					sum += math.Sin(wave[0]*float64(x)/float64(side) + wave[1]*float64(y)/float64(side) + wave[2])
				}
				values[c] = uint8(128 + 30*sum)
			}
			img.Set(x, y, color.RGBA{values[0], values[1], values[2], 255})
		}
	}
	return img
}

// asJPEG encodes an image with losses.
func asJPEG(t *testing.T, img image.Image, quality int) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := jpeg.Encode(&b, img, &jpeg.Options{Quality: quality}); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// duplicated writes 20 scenes of two classes into train and test, where test images 0 to 4 are
// training images, saved again with losses, and test image 5 is one as it is.
// Training images 0 and 1 are also in the other class.
func duplicated(t *testing.T, side int) string {
	t.Helper()
	root := dots(t)
	for i := range uint64(20) {
		class := "ab"[i%2 : i%2+1]
		img := scene(i, side)
		write(t, encoded(t, img), root, "train", class, fmt.Sprintf("%d.png", i))
		if i < 2 {
			write(t, encoded(t, img), root, "train", "ba"[i:i+1], fmt.Sprintf("%d.png", i))
		}
		switch {
		case i >= 4 && i < 9:
			write(t, asJPEG(t, img, 60+5*int(i)), root, "test", class, fmt.Sprintf("%d.jpg", i))
		case i == 9:
			write(t, encoded(t, img), root, "test", class, "9.png")
		default:
			write(t, encoded(t, scene(100+i, side)), root, "test", class, fmt.Sprintf("%d.png", i))
		}
	}
	return root
}

func TestDuplicates(t *testing.T) {
	for _, side := range []int{64, 128} {
		root := duplicated(t, side)
		texts := []string{
			"dots: 1 of 20 test images are copies of images in other splits, which makes scores too good, such as test/b/9.png and train/b/9.png",
			"dots: 5 of 20 test images are nearly the same as images in other splits, which makes scores too good, such as " +
				"test/a/4.jpg and train/a/4.png, test/a/6.jpg and train/a/6.png, test/a/8.jpg and train/a/8.png, ...",
			"dots: 4 images have copies with another label, such as train/a/0.png (a) and train/b/0.png (b), train/a/1.png (a) and train/b/1.png (b)",
		}
		for _, policy := range []Duplicates{"", AllowDuplicates} {
			options := ownSplits(t)
			options.Duplicates = policy
			splits, err := Open(root, options)
			if err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(splits.Train.Remarks, texts) || splits.Train.Len() != 22 || splits.Test.Len() != 20 {
				t.Errorf("%q: %d training and %d test images, remarks %q, want %q", policy, splits.Train.Len(), splits.Test.Len(), splits.Train.Remarks, texts)
			}
		}
		options := ownSplits(t)
		options.Duplicates = RejectDuplicates
		if _, err := Open(root, options); !errors.As(err, new(*OptionError)) || !strings.Contains(err.Error(), strings.Join(texts, "\n")) {
			t.Errorf("error %v, want an OptionError with %q", err, texts)
		}
		options.Duplicates = DropDuplicates
		splits, err := Open(root, options)
		if err != nil {
			t.Fatal(err)
		}
		for i := range texts {
			texts[i] += " (dropped)"
		}
		if !slices.Equal(splits.Train.Remarks, texts) || splits.Train.Len() != 18 || splits.Test.Len() != 14 {
			t.Errorf("%d training and %d test images, remarks %q, want %q", splits.Train.Len(), splits.Test.Len(), splits.Train.Remarks, texts)
		}
		if test, err := Load(root, Test, options); err != nil || !slices.Equal(test.Files, splits.Test.Files) {
			t.Errorf("Load has other test images: %v", err)
		}
		if left, unclear := exactDuplicates(splits); left.places != nil || unclear.places != nil || nearCopies(splits) != nil {
			t.Error("duplicates remain")
		}
	}
}

func TestDuplicatesErrors(t *testing.T) {
	options := isolated(t)
	options.Duplicates = "ignore"
	if _, err := Open(dots(t, "a/1.png"), options); err == nil || !strings.Contains(err.Error(), `Duplicates: must be allow, drop or reject, got "ignore"`) {
		t.Errorf("error %v", err)
	}
	options.Duplicates = DropDuplicates
	for want, parts := range map[string][3][]int{
		"dots: must leave an image of the test split, got copies only": {Train: {10, 21, 32}, Test: {10, 21}},
		"dots: must leave a training image of class b, got only":       {Train: {10, 11, 22, 30}},
	} {
		if err := options.checkDuplicates(splitsOf(t, parts)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q", err, want)
		}
	}
	// Images without labels have no other label.
	splits := splitsOf(t, [3][]int{Train: {10, 20}, Test: {10, 21, 32}})
	splits.Test.Labels = nil
	if err := options.checkDuplicates(splits); err != nil || splits.Test.Len() != 1 {
		t.Errorf("%d images remain, %v", splits.Test.Len(), err)
	}
}

// The search finds the pairs that a comparison of all images finds, and no others.
func TestNearCopiesAll(t *testing.T) {
	letters, err := Load("glyphs", Train, isolated(t))
	if err != nil {
		t.Fatal(err)
	}
	train, others, err := letters.Split(1500)
	if err != nil {
		t.Fatal(err)
	}
	test, others, err := others.Split(1000)
	if err != nil {
		t.Fatal(err)
	}
	validation, _, err := others.Split(500)
	if err != nil {
		t.Fatal(err)
	}
	splits := &Splits{Train: train, Test: test, Validation: validation}
	var want [][2]place
	all := sketches(splits)
	for i := range all {
		for k := range all[:i] {
			if a, b := &all[k], &all[i]; a.at.split != b.at.split && bits.OnesCount64(a.hash^b.hash) <= nearBits && nearlySame(a, b, map[place][]byte{}) {
				want = append(want, [2]place{b.at, a.at})
				break
			}
		}
	}
	if got := nearCopies(splits); !slices.Equal(got, want) || len(got) == 0 {
		t.Errorf("found %v, want %v", got, want)
	}
}

// Digits, and images of one colour, are not taken for copies of each other.
func TestNoFalseNearCopies(t *testing.T) {
	digits, err := Load("mnist", Test, isolated(t))
	if err != nil {
		t.Fatal(err)
	}
	train, test, err := digits.Split(6000)
	if err != nil {
		t.Fatal(err)
	}
	if pairs := nearCopies(&Splits{Train: train, Test: test}); pairs != nil {
		t.Errorf("digits: %d pairs, the first %v", len(pairs), pairs[0])
	}
	plain := Dataset{Name: "plain", Channels: 3, Height: 4, Width: 4}
	for i := range 100 {
		plain.Images = append(plain.Images, bytes.Repeat([]byte{byte(100 + i)}, 16)...)
		plain.Images = append(plain.Images, bytes.Repeat([]byte{200}, 32)...)
	}
	train, test, err = plain.Split(50)
	if err != nil {
		t.Fatal(err)
	}
	if pairs := nearCopies(&Splits{Train: train, Test: test}); pairs != nil {
		t.Errorf("plain colours: %d pairs, the first %v", len(pairs), pairs[0])
	}
}

func TestDifferenceHash(t *testing.T) {
	ramp := make([]byte, 36*36)
	for i := range ramp {
		ramp[i] = byte(5 * (i % 36))
	}
	if hash := differenceHash(ramp, 1, 36, 36); hash != math.MaxUint64 {
		t.Errorf("an image that gets lighter has the hash %016x, want all bits", hash)
	}
	slices.Reverse(ramp)
	if hash := differenceHash(ramp, 1, 36, 36); hash != 0 {
		t.Errorf("an image that gets darker has the hash %016x, want 0", hash)
	}
	if hash := differenceHash([]byte{7}, 1, 1, 1); hash != 0 {
		t.Errorf("an image of one pixel has the hash %016x, want 0", hash)
	}
	red, green := make([]byte, 3*81), make([]byte, 3*81)
	for i := range 81 { // equally light, by their luminance
		red[i], green[81+i] = 200, 102
	}
	if hash := differenceHash(append(red[:0:0], red...), 3, 9, 9); hash != differenceHash(green, 3, 9, 9) {
		t.Errorf("plain images differ: %016x", hash)
	}
}

func TestThumbnail(t *testing.T) {
	image := make([]byte, 2*33*48)
	for i := range image {
		image[i] = byte(mixed(uint64(i)))
	}
	small := thumbnail([]byte{7}, image, 2, 33, 48)
	if len(small) != 1+2*32*32 || small[0] != 7 {
		t.Fatalf("%d values", len(small))
	}
	for _, at := range [][3]int{{0, 0, 0}, {1, 31, 31}, {1, 5, 20}} {
		c, row, column := at[0], at[1], at[2]
		sum, n := 0, 0
		for y := row * 33 / 32; y < (row+1)*33/32; y++ {
			for x := column * 48 / 32; x < (column+1)*48/32; x++ {
				sum, n = sum+int(image[(c*33+y)*48+x]), n+1
			}
		}
		if got := small[1+(c*32+row)*32+column]; int(got) != sum/n {
			t.Errorf("cell %v is %d, want %d", at, got, sum/n)
		}
	}
	if same := thumbnail(nil, image[:20*30], 1, 20, 30); !bytes.Equal(same, image[:20*30]) {
		t.Error("a small image changes")
	}
}
