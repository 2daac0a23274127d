package datasets

import (
	"path/filepath"
	"slices"
	"strconv"

	"github.com/pkg/errors"
)

// arrayPart is one split of a data set that is stored as arrays.
type arrayPart struct {
	images                  []byte // [N C H W]
	channels, height, width int
	labels                  []int32
	headed                  bool // CSV: a header line names the column of the labels
}

// arraySplits makes data sets from arrays. If classNames is nil, the classes are 0, 1, ... up to
// the largest label of all parts.
func arraySplits(path string, parts [3]*arrayPart, classNames []string, hashes map[string]string) (*Splits, error) {
	if classNames == nil {
		largest := int32(0)
		for _, part := range parts {
			if part != nil {
				for _, label := range part.labels {
					largest = max(largest, label)
				}
			}
		}
		if largest >= maxClasses {
			return nil, errors.Errorf("datasets: %s: labels must be below %[3]d, got %[2]d", path, largest, maxClasses)
		}
		classNames = numberNames(int(largest) + 1)
	}
	var all [3]*Dataset
	begin := slices.IndexFunc(parts[:], func(p *arrayPart) bool { return p != nil })
	first := parts[begin]
	for split, part := range parts {
		if part == nil {
			continue
		}
		if part.channels != first.channels || part.height != first.height || part.width != first.width {
			return nil, errors.Errorf("datasets: %s: all splits must have images of the same shape, got %[2]s of %dx%dx%d and %s of %dx%dx%d",
				path, Split(split), part.channels, part.height, part.width, Split(begin), first.channels, first.height, first.width)
		}
		d := &Dataset{
			Name: nameOf(path), Images: part.images, Labels: part.labels,
			Channels: part.channels, Height: part.height, Width: part.width,
			Classes: len(classNames), ClassNames: classNames, Place: filepath.Dir(path), Hashes: hashes,
		}
		d.Mean, d.Std = moments(part.images, part.channels, part.height*part.width)
		all[split] = d
	}
	return &Splits{Train: all[Train], Validation: all[Validation], Test: all[Test]}, nil
}

// nameOf returns a data set's name from its path: the last part, without a file's extension.
func nameOf(path string) string {
	if whole, err := filepath.Abs(path); err == nil {
		path = whole // the path may be "."
	}
	name := filepath.Base(path)
	if !isDir(path) {
		for extension := filepath.Ext(name); extension != "" && extension != name; extension = filepath.Ext(name) {
			name = name[:len(name)-len(extension)]
		}
	}
	return name
}

// planar turns images [N H W C] into [N C H W].
func planar(images []byte, channels, height, width int) []byte {
	if channels == 1 {
		return images
	}
	turned, plane := make([]byte, len(images)), height*width
	for image := 0; image < len(images); image += plane * channels {
		for i := range plane {
			for c := range channels {
				turned[image+c*plane+i] = images[image+i*channels+c]
			}
		}
	}
	return turned
}

// onlyDir descends through directories whose only visible entry is a directory, as in unpacked
// archives.
func onlyDir(path string) string {
	for range maxDepth {
		entries, err := readDir(path, "")
		if err != nil || len(entries) != 1 || !entries[0].isDir {
			break
		}
		path = filepath.Join(path, entries[0].name)
	}
	return path
}

// quoted lists names for an error.
func quoted(names []string) string {
	list := ""
	for i, name := range names {
		if i > 0 {
			list += ", "
		}
		list += strconv.Quote(name)
	}
	return list
}
