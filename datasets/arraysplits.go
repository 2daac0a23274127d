package datasets

import (
	"path/filepath"
	"slices"
	"strings"

	"github.com/pkg/errors"
)

// splits makes data sets from the parts that have labels. Others are remarked on and left out,
// except for the test images if the options accept them without labels. If there are no labels at
// all, the error is a NoClassesError.
func (s arraySet) splits(path string, options Options) (*Splits, error) {
	parts, left, err := s.labelled(path, options)
	if err != nil {
		return nil, err
	}
	classNames := s.classNames
	switch {
	case classNames == nil:
		if classNames, err = numberLabels(path, parts, options); err != nil {
			return nil, err
		}
	case parts[Train] != nil:
		remarkClasses(path, parts[Train], classNames, options)
	}
	if left != nil {
		parts[Test] = left
	}
	var all [3]*Dataset
	begin := slices.IndexFunc(parts[:], func(p *arrayPart) bool { return p != nil })
	first := parts[begin]
	for split, part := range present(parts) {
		if part.channels != first.channels || part.height != first.height || part.width != first.width {
			return nil, errors.Errorf("datasets: %s: all splits must have images of the same shape, got %[2]s of %dx%dx%d and %s of %dx%dx%d",
				path, split, part.channels, part.height, part.width, Split(begin), first.channels, first.height, first.width)
		}
		d := part.dataset(path, s.hashes, options)
		d.Name = nameOf(path)
		if part.labels != nil {
			d.Labels, d.LabelColumn, d.Classes, d.ClassNames = part.labels, part.labelColumn, len(classNames), classNames
		}
		all[split] = d
	}
	return newSplits(all), nil
}

// labelled returns the parts that have labels, and the test images without labels if the options
// accept them.
func (s arraySet) labelled(path string, options Options) (parts [3]*arrayPart, test *arrayPart, err error) {
	var without []string
	for split, part := range present(s.parts) {
		part.dropUnlabelled(options)
		switch {
		case part.labels != nil:
			parts[split] = part
		case split == Test && options.Unlabelled:
			test = part
		default:
			without = append(without, part.name)
		}
	}
	if parts == [3]*arrayPart{} || s.parts[Train] != nil && parts[Train] == nil {
		if len(without) == 0 && test == nil {
			return parts, nil, errors.Errorf("datasets: %s: must have arrays of images, got none that can be read", path)
		}
		if len(without) == 0 {
			without = []string{test.name}
		}
		problem := "must have a label for each image"
		if inside := strings.TrimLeft(strings.TrimPrefix(without[0], path), `/\: `); inside != "" {
			problem += " of " + inside
		}
		return parts, nil, errors.WithStack(&NoClassesError{path, problem})
	}
	for _, name := range without {
		options.remark("%s: left out, since it has no labels", filepath.Base(name))
	}
	return parts, test, nil
}
