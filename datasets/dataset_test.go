package datasets

import (
	"math"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// small returns a valid data set of five images of 2x3x1 bytes.
func small() *Dataset {
	return &Dataset{
		Name: "small", Images: []byte("aaaaaabbbbbbccccccddddddeeeeee"), Labels: []int32{0, 1, 2, 0, 0},
		Channels: 2, Height: 3, Width: 1, Classes: 4, ClassNames: []string{"w", "x", "y", "z"},
		Mean: []float64{0.5, 0.4}, Std: []float64{0.25, 0.2},
	}
}

func TestDataset(t *testing.T) {
	d := small()
	if err := d.Validate(); err != nil {
		t.Fatal(err)
	}
	if d.Len() != 5 || d.ImageSize() != 6 {
		t.Errorf("%d images of %d bytes, want 5 of 6", d.Len(), d.ImageSize())
	}
	if got := string(d.Image(3)); got != "dddddd" {
		t.Errorf("image 3 is %q", got)
	}
	if diff := cmp.Diff([]int{3, 1, 1, 0}, d.Counts()); diff != "" {
		t.Error("counts:", diff)
	}
}

func TestSlice(t *testing.T) {
	d := small()
	slice, err := d.Slice(1, 3)
	if err != nil {
		t.Fatal(err)
	}
	if err := slice.Validate(); err != nil {
		t.Error(err)
	}
	if string(slice.Images) != "bbbbbbcccccc" || !slices.Equal(slice.Labels, []int32{1, 2}) {
		t.Errorf("slice is %q %v", slice.Images, slice.Labels)
	}
	// Appending to a slice must not overwrite the rest.
	_, _ = append(slice.Images, 'x'), append(slice.Labels, 9)
	_ = append(slice.Image(0), 'x')
	if diff := cmp.Diff(small(), d); diff != "" {
		t.Error("the whole was changed:", diff)
	}
	for _, bounds := range [][2]int{{-1, 2}, {2, 2}, {3, 2}, {0, 6}} {
		if _, err := d.Slice(bounds[0], bounds[1]); err == nil {
			t.Errorf("slice %v: no error", bounds)
		}
	}
}

func TestSplit(t *testing.T) {
	first, others, err := small().Split(4)
	if err != nil {
		t.Fatal(err)
	}
	if first.Len() != 4 || others.Len() != 1 || string(others.Images) != "eeeeee" {
		t.Errorf("split into %d and %d, the last %q", first.Len(), others.Len(), others.Images)
	}
	for _, n := range []int{-1, 0, 5, 6} {
		if _, _, err := small().Split(n); err == nil {
			t.Errorf("split at %d: no error", n)
		}
	}
}

func TestValidate(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*Dataset)
		want   string
	}{
		"no size":          {func(d *Dataset) { d.Width = 0 }, "small: images must have at least 1x1x1 values, got 2x3x0"},
		"no classes":       {func(d *Dataset) { d.Classes = 0 }, "small: must have 1 to 65536 classes, got 0"},
		"many classes":     {func(d *Dataset) { d.Classes = 65537 }, "small: must have 1 to 65536 classes, got 65537"},
		"class names":      {func(d *Dataset) { d.ClassNames = d.ClassNames[1:] }, "small: must have 4 class names, got 3"},
		"bytes in a name":  {func(d *Dataset) { d.ClassNames[1] = "caf\xe9" }, `small: class names must be UTF-8, got "caf\xe9"`},
		"empty":            {func(d *Dataset) { d.Labels, d.Images = nil, nil }, "small: must have at least 1 image, got none"},
		"too few bytes":    {func(d *Dataset) { d.Images = d.Images[1:] }, "small: images must have 6 bytes each, got 29 bytes"},
		"label":            {func(d *Dataset) { d.Labels[3] = 4 }, "small: label 3 must be 0 or more and below 4, got 4"},
		"mean":             {func(d *Dataset) { d.Mean = []float64{0, math.NaN()} }, "small: mean in channel 1 must be finite, got NaN"},
		"no deviation":     {func(d *Dataset) { d.Std = []float64{1, 0} }, "small: standard deviation in channel 1 must be finite and positive, got 0"},
		"bad deviation":    {func(d *Dataset) { d.Std = []float64{1, math.NaN()} }, "small: standard deviation in channel 1 must be finite and positive, got NaN"},
		"endless variance": {func(d *Dataset) { d.Std = []float64{1, math.Inf(1)} }, "small: standard deviation in channel 1 must be finite and positive, got +Inf"},
	} {
		t.Run(name, func(t *testing.T) {
			d := small()
			test.change(d)
			wantError(t, d.Validate(), "datasets: small: ", test.want)
		})
	}
}

func TestMoments(t *testing.T) {
	for _, n := range []int{1, 31, 257, 10007} {
		images := randomBytes(uint64(n), n)
		var mean, variance float64
		for _, pixel := range images {
			mean += float64(pixel) / 255 / float64(n)
		}
		for _, pixel := range images {
			variance += math.Pow(float64(pixel)/255-mean, 2) / float64(n)
		}
		if n == 1 {
			variance = 1 // there is one value only
		}
		means, stds := moments(images, 1, n)
		gotMean, gotStd := means[0], stds[0]
		if math.Abs(gotMean-mean) > 1e-12 || math.Abs(gotStd-math.Sqrt(variance)) > 1e-7 {
			t.Errorf("n = %d: mean %v, deviation %v, want %v, %v", n, gotMean, gotStd, mean, math.Sqrt(variance))
		}
	}
}
