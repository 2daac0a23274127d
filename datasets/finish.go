package datasets

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/pkg/errors"
)

// finish applies the options to splits as they were read. published is true for known data sets.
func finish(splits *Splits, options Options, published bool) (*Splits, error) {
	if err := options.checkLabel(splits); err != nil {
		return nil, err
	}
	for _, part := range []**Dataset{&splits.Train, &splits.Validation, &splits.Test} {
		if err := options.apply(part); err != nil {
			return nil, err
		}
	}
	if err := checkMeasurements(splits.Train); err != nil {
		return nil, err
	}
	if err := options.groups(splits); err != nil {
		return nil, err
	}
	if err := options.draw(splits, published); err != nil {
		return nil, err
	}
	if err := options.checkDuplicates(splits); err != nil {
		return nil, err
	}
	if splits.Train != nil {
		remarkValues(splits.Train, options)
	}
	of := splits.first()
	mean, std := of.Mean, of.Std
	if !published || options.shapes() || options.selects() {
		mean, std = moments(of.Images, of.Channels, of.Height*of.Width)
	}
	for _, part := range []*Dataset{splits.Train, splits.Validation, splits.Test} {
		if part == nil {
			continue
		}
		if part.Height > MaxSide || part.Width > MaxSide {
			return nil, errors.Errorf("datasets: %s: images must be at most %[4]dx%[5]d, got %[2]dx%[3]d: use a smaller height and width",
				part.Name, part.Height, part.Width, MaxSide, MaxSide)
		}
		part.Mean, part.Std = mean, std
		if err := part.Validate(); err != nil {
			return nil, err
		}
	}
	return splits, nil
}

// checkMeasurements refuses labels that are measurements, such as ages. It takes labels for
// measurements if they are numbers, not all integers, and if there are at least ten classes with at
// most two images each on average.
func checkMeasurements(d *Dataset) error {
	if d == nil || len(d.ClassNames) < 10 || 2*len(d.ClassNames) < len(d.Labels) {
		return nil
	}
	fraction := ""
	for _, name := range d.ClassNames {
		v, err := strconv.ParseFloat(name, 64)
		if err != nil {
			return nil
		}
		if v != math.Trunc(v) {
			fraction = name
		}
	}
	if fraction == "" {
		return nil
	}
	return errors.Errorf("datasets: %s: labels must be classes, got %d different numbers for %d images, such as %s: for a measurement, make classes of ranges",
		d.Name, len(d.ClassNames), len(d.Labels), fraction)
}

// draw draws the test split and then the validation split from the training images, unless the
// data already have them, or are published: then only if the options have a fraction. If the data
// have only a validation split, the test split is half of that.
func (o Options) draw(splits *Splits, published bool) error {
	if splits.Validation != nil && splits.Test == nil && o.Test == 0 {
		return o.halveValidation(splits)
	}
	before, all := "", 0
	if splits.Train != nil {
		all = splits.Train.Len()
	}
	// The second draw needs another seed: with the same order it would take the images next to the
	// first.
	for seed, split := range []struct {
		part     **Dataset
		share    float64
		standard func(images int) float64
		name     string
	}{
		{&splits.Test, o.Test, testShare, "Test"},
		{&splits.Validation, o.Validation, validationShare, "Validation"},
	} {
		if *split.part != nil && split.share > 0 {
			o.remark("%s has its own %s images: the requested fraction is ignored",
				(*split.part).Name, strings.ToLower(split.name))
		}
		if *split.part != nil || splits.Train == nil {
			continue
		}
		share := split.share
		if share == 0 && !published {
			share = split.standard(splits.Train.Len())
		}
		if share <= 0 {
			continue
		}
		rest, part, err := splits.Train.Stratified(share, o.Seed+uint64(seed))
		if err != nil && split.share == 0 && before == "" && splits.Test != nil {
			o.remark("no images are held out for calibration: %v", err)
			continue
		}
		if err != nil {
			return invalid(split.name, "%v%s", err, before)
		}
		splits.Train, *split.part = rest, part
		before = fmt.Sprintf(" (the %s split was drawn before)", strings.ToLower(split.name))
	}
	if before != "" && 2*splits.Train.Len() < all {
		o.remark("%s: only %d of %d images are left for training: smaller test and validation fractions leave more",
			splits.Train.Name, splits.Train.Len(), all)
	}
	if before != "" && o.Group == "" {
		remarkSequences(splits, o)
	}
	return nil
}

// halveValidation makes half of the validation images test images.
func (o Options) halveValidation(splits *Splits) error {
	rest, part, err := splits.Validation.Stratified(0.5, o.Seed)
	if err != nil {
		o.remark("%s has no test images, and its validation images cannot be divided: %v", splits.Validation.Name, err)
		return nil
	}
	o.remark("%s has no test images: %d of its %d validation images are used for scores, the others for calibration "+
		"(a test fraction draws training images instead)", splits.Validation.Name, part.Len(), splits.Validation.Len())
	splits.Validation, splits.Test = rest, part
	return nil
}

// testShare returns the default fraction of images for the test split.
func testShare(int) float64 { return 0.2 }

// validationShare returns the default fraction of training images for the validation split: 0.1,
// or up to 0.2 for fewer than 1000 images, so that 100 are held out. Decisions need them:
// one that must accept 95 % of 36 images has to accept all of them, and the oddest image then
// determines it.
func validationShare(images int) float64 { return min(0.2, max(0.1, 100/float64(images))) }

// apply selects the options' classes of a split and gives it the options' shape.
func (o Options) apply(part **Dataset) (err error) {
	if *part == nil {
		return nil
	}
	given := *part
	if len(o.Classes) > 0 {
		if *part, err = (*part).WithClasses(o.Classes...); err != nil {
			return invalid("Classes", "%v", err)
		}
	}
	if len(o.WithoutClasses) > 0 {
		if other := missing(given.spelled(o.WithoutClasses), (*part).ClassNames); other != "" && slices.Contains(given.ClassNames, other) {
			return invalid("WithoutClasses", "must be among the selected classes, %[2]s, got %[1]q", other, abbreviated((*part).ClassNames))
		}
		if *part, err = (*part).WithoutClasses(o.WithoutClasses...); err != nil {
			return invalid("WithoutClasses", "%v", err)
		}
	}
	*part, err = (*part).reshaped(o.Channels, o.Height, o.Width, o.Crop)
	return err
}
