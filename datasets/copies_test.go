package datasets

import (
	"image/color"
	"slices"
	"testing"
)

// splitsOf makes splits of grey images of one pixel, whose labels are in the units and whose pixels
// are in the tens.
func splitsOf(t *testing.T, parts [3][]int) *Splits {
	t.Helper()
	var all [3]*Dataset
	for split, values := range parts {
		if values == nil {
			continue
		}
		var pixels []byte
		var labels []int32
		for _, value := range values {
			pixels, labels = append(pixels, byte(value/10)), append(labels, int32(value%10))
		}
		d, err := New("dots", pixels, labels, 1, 1, 1, []string{"a", "b", "c"})
		if err != nil {
			t.Fatal(err)
		}
		all[split] = d
	}
	return &Splits{Train: all[Train], Validation: all[Validation], Test: all[Test]}
}

func TestRemarkCopies(t *testing.T) {
	for _, test := range []struct {
		name  string
		parts [3][]int
		want  []string
	}{
		{"none", [3][]int{Train: {10, 21}, Test: {30}, Validation: {41}}, nil},
		{"within a split, with the same label", [3][]int{Train: {10, 10, 21}, Test: {30, 30}}, nil},
		{"across splits", [3][]int{Train: {10, 21}, Test: {30, 21}, Validation: {30, 10, 50}}, []string{
			"dots: 1 of 2 test images are copies of images in other splits, which makes scores too good, such as image 1 of test and image 1 of train",
			"dots: 2 of 3 validation images are copies of images in other splits, which makes scores too good, such as " +
				"image 0 of validation and image 0 of test, image 1 of validation and image 0 of train",
		}},
		{"with other labels", [3][]int{Train: {10, 11, 10, 20, 21, 30, 40, 41, 50, 51}}, []string{
			"dots: 9 images have copies with another label, such as image 0 of train (a) and image 1 of train (b), " +
				"image 3 of train (a) and image 4 of train (b), image 6 of train (a) and image 7 of train (b), ...",
		}},
	} {
		options, remarks := Options{}.recording()
		if err := options.checkDuplicates(splitsOf(t, test.parts)); err != nil {
			t.Error(err)
		}
		if !slices.Equal(remarks.texts, test.want) {
			t.Errorf("%s: remarks %q, want %q", test.name, remarks.texts, test.want)
		}
	}
}

// Opening data finds copies in every format, also between splits that are drawn, and names files.
func TestOpenRemarksOnCopies(t *testing.T) {
	root := flowers(t, 2, "train", "test")
	write(t, encoded(t, colourPicture(20, 20, color.White)), root, "train", "iris", "x.png")
	write(t, encoded(t, colourPicture(30, 30, color.White)), root, "train", "rose", "y.png")
	write(t, encoded(t, colourPicture(30, 30, color.White)), root, "test", "iris", "z.png")
	splits, err := Open(root, ownSplits(t))
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"flowers: 1 of 7 test images are copies of images in other splits, which makes scores too good, such as test/iris/z.png and train/iris/x.png",
		"flowers: 3 images have copies with another label, such as train/iris/x.png (iris) and train/rose/y.png (rose)",
	}
	if !slices.Equal(splits.Test.Remarks, want) {
		t.Errorf("remarks %q, want %q", splits.Test.Remarks, want)
	}
}
