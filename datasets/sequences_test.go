package datasets

import (
	"fmt"
	"slices"
	"testing"
)

func TestSequenceOf(t *testing.T) {
	for file, want := range map[string]string{
		"rose/clip07-frame12.png": "rose/clip07-frame", "7/00001_00029.ppm": "7/00001_", "rose/video1/0001.png": "rose/video1/",
		"rose/0001.png": "", "rose/a.png": "", "7/a.png": "", "7/1.png": "7/", "x1": "", "x2y1": "x2y",
	} {
		if got := sequenceOf(file); got != want {
			t.Errorf("sequenceOf(%q) = %q, want %q", file, got, want)
		}
	}
}

func TestRemarkSequences(t *testing.T) {
	for _, test := range []struct {
		name string
		file func(class string, i int) string
		want []string
	}{
		{"frames", func(class string, i int) string { return fmt.Sprintf("%s/clip%d-frame%d.png", class, i/6, i%6) }, []string{
			"dots: file names look like 4 sequences of images, and 4 of them are in several splits, such as 1/clip0-frame...: " +
				"if the images of a sequence are alike, scores and guarantees are too good; keep each in one split with the group " + sequencePattern,
		}},
		{"patients with images of both classes", func(class string, i int) string { return fmt.Sprintf("%s/patient%d-%s%d.png", class, i/3, class, i%3) }, []string{
			"dots: file names look like 4 sequences of images, and 4 of them are in several splits, such as patient0-...: " +
				"if the images of a sequence are alike, scores and guarantees are too good; keep each in one split with the group " + acrossClassesPattern,
		}},
		{"numbers", func(class string, i int) string { return fmt.Sprintf("%s/%d.png", class, i) }, nil},
		{"a sequence for each class", func(class string, i int) string { return fmt.Sprintf("%s/n%s_%d.png", class, class, i) }, nil},
		{"pairs", func(class string, i int) string { return fmt.Sprintf("%s/p%d-%d.png", class, i/2, i%2) }, nil},
	} {
		var names []string
		for i := range 12 {
			names = append(names, test.file("1", i), test.file("2", i))
		}
		options := isolated(t)
		options.Test = 0.4
		splits, err := Open(dots(t, names...), options)
		if err != nil || !slices.Equal(splits.Train.Remarks, test.want) {
			t.Errorf("%s: remarks %q, %v, want %q", test.name, splits.Train.Remarks, err, test.want)
		}
	}
	// Splits that the data have are their owner's.
	var names []string
	for i := range 12 {
		names = append(names, fmt.Sprintf("train/a/clip%d-%d.png", i/4, i%4), fmt.Sprintf("test/a/clip%d-%d.png", i/4, 4+i%4))
	}
	splits, err := Open(dots(t, names...), ownSplits(t))
	if err != nil || splits.Train.Remarks != nil {
		t.Errorf("remarks %q, %v", splits.Train.Remarks, err)
	}
	// The directory of a class and a split is no sequence, although validation images come from it.
	names = nil
	for i := range 24 {
		names = append(names, fmt.Sprintf("train/1/IMG_%d.png", i), fmt.Sprintf("train/2/IMG_%d.png", i))
		names = append(names, fmt.Sprintf("test/1/IMG_%d.png", 30+i), fmt.Sprintf("test/2/IMG_%d.png", 30+i))
	}
	options := isolated(t)
	options.Validation = 0.4
	splits, err = Open(dots(t, names...), options)
	if err != nil || splits.Validation == nil || splits.Train.Remarks != nil {
		t.Errorf("directories of classes: remarks %q, %v", splits.Train.Remarks, err)
	}
}
