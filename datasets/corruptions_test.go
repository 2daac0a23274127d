package datasets

import (
	"bytes"
	"math"
	"slices"
	"testing"
)

// ramp has n images, each darker at the left, in the given number of channels.
func ramp(t *testing.T, n, channels, height, width int) *Dataset {
	t.Helper()
	d := &Dataset{Name: "ramp", Channels: channels, Height: height, Width: width, Classes: 1, ClassNames: []string{"0"}}
	for range n {
		for channel := range channels {
			for range height {
				for x := range width {
					d.Images = append(d.Images, byte(40+20*channel+120*x/width))
				}
			}
		}
		d.Labels = append(d.Labels, 0)
	}
	return d
}

// added returns the mean and the standard deviation of the change of the images' values.
func added(from, to *Dataset) (mean, std float64) {
	for i, v := range to.Images {
		mean += (float64(v) + 0.5 - float64(from.Images[i])) / 255 / float64(len(to.Images))
	}
	for i, v := range to.Images {
		off := (float64(v)+0.5-float64(from.Images[i]))/255 - mean
		std += off * off / float64(len(to.Images))
	}
	return mean, math.Sqrt(std)
}

// TestShifts: every corruption at every severity changes images. The result is reproducible, does
// not depend on preceding images, and leaves the given data unchanged.
func TestShifts(t *testing.T) {
	d := ramp(t, 3, 3, 20, 24)
	before := bytes.Clone(d.Images)
	for _, name := range Corruptions() {
		last := 0.0
		for severity := 1; severity <= 5; severity++ {
			corrupted, err := d.Corrupted(name, severity, 7)
			if err != nil {
				t.Fatal(err)
			}
			again, err := d.Corrupted(name, severity, 7)
			if err != nil || !bytes.Equal(again.Images, corrupted.Images) {
				t.Errorf("%s %d: other images the second time (%v)", name, severity, err)
			}
			if bytes.Equal(corrupted.Images, d.Images) {
				t.Errorf("%s %d: nothing changed", name, severity)
			}
			mean, std := added(d, corrupted)
			if size := math.Hypot(mean, std); size < last-0.003 {
				t.Errorf("%s %d: changes by %.3f, severity %d by %.3f", name, severity, size, severity-1, last)
			} else {
				last = size
			}
			if err := corrupted.Validate(); err == nil && len(corrupted.Labels) != 3 {
				t.Errorf("%s: %d labels", name, len(corrupted.Labels))
			}
		}
	}
	if !bytes.Equal(before, d.Images) {
		t.Error("the images themselves were changed")
	}
	first, err := d.Slice(0, 1)
	if err != nil {
		t.Fatal(err)
	}
	alone, err := first.Corrupted("gaussian-noise", 3, 7)
	if err != nil {
		t.Fatal(err)
	}
	all, err := d.Corrupted("gaussian-noise", 3, 7)
	if err != nil || !bytes.Equal(all.Image(0), alone.Image(0)) || bytes.Equal(all.Image(0), all.Image(1)) {
		t.Errorf("noise does not depend only on the image's number (%v)", err)
	}
}

// TestShiftsAreAsPublished checks the meaning of the parameters.
func TestShiftsAreAsPublished(t *testing.T) {
	corrupted := func(d *Dataset, name string, severity int) *Dataset {
		t.Helper()
		s, err := d.Corrupted(name, severity, 1)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	near := func(what string, got, want, tolerance float64) {
		t.Helper()
		if !(math.Abs(got-want) <= tolerance) {
			t.Errorf("%s is %.4f, want %.4f", what, got, want)
		}
	}
	d := ramp(t, 40, 3, 20, 24)
	mean, std := added(d, corrupted(d, "gaussian-noise", 3))
	near("the noise's mean", mean, 0, 0.002)
	near("the noise's deviation", std, 0.08, 0.002)
	mean, _ = added(d, corrupted(d, "brightness", 4))
	// The value is blue, the third channel: the others grow in proportion.
	near("the light added", mean, 0.2*(meanOf(d, 0)/meanOf(d, 2)+meanOf(d, 1)/meanOf(d, 2)+1)/3, 0.02)
	impulses := 0
	for i, v := range corrupted(d, "impulse-noise", 5).Images {
		if v != d.Images[i] {
			impulses++
		}
	}
	near("the fraction of impulses", float64(impulses)/float64(len(d.Images)), 0.07, 0.005)
	flat := corrupted(d, "contrast", 2)
	near("the contrast left", deviationOf(flat)/deviationOf(d), 0.5, 0.02)
	// A point becomes a normal density.
	point := ramp(t, 1, 1, 21, 21)
	clear(point.Images)
	point.Images[10*21+10] = 255
	density := func(x, y float64) float64 { return math.Exp(-(x*x+y*y)/2) / (2 * math.Pi) }
	blurred := corrupted(point, "gaussian-blur", 5).Images
	for _, at := range [][2]int{{0, 0}, {1, 0}, {0, 2}, {1, 1}} {
		near("a blurred point", float64(blurred[(10+at[0])*21+10+at[1]]), math.Floor(255*density(float64(at[0]), float64(at[1]))), 1)
	}
	// Channels of other images are compressed one by one.
	five := ramp(t, 2, 5, 20, 24)
	fifth := &Dataset{Name: "fifth", Channels: 1, Height: 20, Width: 24, Images: append(slices.Clone(five.Image(0)[4*480:]), five.Image(1)[4*480:]...)}
	if got := corrupted(five, "jpeg", 5); !slices.Equal(got.Image(1)[4*480:], corrupted(fifth, "jpeg", 5).Image(1)) || slices.Equal(got.Images, five.Images) {
		t.Error("the fifth channel is not compressed like a grey image")
	}
	// 20 pixels become 13 and 20 again: no more than 13 values are left.
	values := map[byte]bool{}
	for _, v := range corrupted(ramp(t, 1, 1, 20, 20), "pixelate", 5).Images {
		values[v] = true
	}
	if len(values) != 13 {
		t.Errorf("%d values of 13 pixels", len(values))
	}
	for _, c := range []struct {
		channels, severity int
		name, want         string
	}{
		{3, 0, "jpeg", "jpeg: severity must be 1 to 5, got 0"}, {3, 6, "jpeg", "jpeg: severity must be 1 to 5, got 6"},
		{3, 1, "fog", `no corruption "fog"; there are gaussian-noise, `},
	} {
		_, err := ramp(t, 1, c.channels, 8, 8).Corrupted(c.name, c.severity, 1)
		wantError(t, err, c.want)
	}
}

// meanOf is a channel's mean over all images.
func meanOf(d *Dataset, channel int) float64 {
	mean, _ := moments(d.Images, d.Channels, d.Height*d.Width)
	return mean[channel]
}

// deviationOf is the deviation of the first channel.
func deviationOf(d *Dataset) float64 {
	_, std := moments(d.Images, d.Channels, d.Height*d.Width)
	return std[0]
}
