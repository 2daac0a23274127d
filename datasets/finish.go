package datasets

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/pkg/errors"
)

// finish applies the options to splits as they were read.
func finish(splits *Splits, options Options, keepMoments bool) (*Splits, error) {
	test, validation := options.Test, options.Validation
	if splits.Test == nil && splits.Validation == nil {
		test, validation = defaultShare(test, 0.2), defaultShare(validation, 0.1)
	}
	for _, part := range []**Dataset{&splits.Train, &splits.Validation, &splits.Test} {
		if err := options.apply(part); err != nil {
			return nil, err
		}
	}
	if err := options.groups(splits); err != nil {
		return nil, err
	}
	before := ""
	// The second draw needs another seed: with the same order it would take the images next to the
	// first.
	for seed, draw := range []struct {
		part  **Dataset
		share float64
		name  string
	}{{&splits.Test, test, "Test"}, {&splits.Validation, validation, "Validation"}} {
		if *draw.part != nil && draw.share != 0 {
			options.remark("%s has its own %s images: the requested fraction is ignored",
				(*draw.part).Name, strings.ToLower(draw.name))
		}
		if *draw.part != nil || draw.share <= 0 || splits.Train == nil {
			continue
		}
		rest, part, err := splits.Train.Stratified(draw.share, options.Seed+uint64(seed))
		if err != nil {
			return nil, invalid(draw.name, "%v%s", err, before)
		}
		splits.Train, *draw.part = rest, part
		before = fmt.Sprintf(" (the %s split was drawn before)", strings.ToLower(draw.name))
	}
	if before != "" && options.Group == "" {
		remarkSequences(splits, options)
	}
	if err := options.checkDuplicates(splits); err != nil {
		return nil, err
	}
	if splits.Train != nil {
		remarkValues(splits.Train, options)
	}
	of := cmp.Or(splits.Train, splits.Test, splits.Validation)
	mean, std := of.Mean, of.Std
	if !keepMoments {
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

func defaultShare(share, standard float64) float64 {
	if share == 0 {
		return standard
	}
	return share
}

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
