package datasets

import (
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/pkg/errors"
)

// arrayPart is one split of a data set that is stored as arrays.
type arrayPart struct {
	name                    string // of the images, for answers and remarks: "file.npz: test_images"
	images                  []byte // [N C H W]
	channels, height, width int
	labels                  []int32  // nil if there are none
	groups                  []string // nil if there are none
	ids                     []string // nil if they are not kept, or there are none
	idName                  string   // the name of their column
}

// count returns the number of images.
func (p *arrayPart) count() int { return len(p.images) / (p.channels * p.height * p.width) }

// arraySet is a data set that is stored as arrays.
type arraySet struct {
	parts      [3]*arrayPart     // by Split
	classNames []string          // nil if the labels are the names of the classes
	hashes     map[string]string // of the files, see Dataset.Hashes
}

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
	for split, part := range parts {
		if part == nil {
			continue
		}
		if part.channels != first.channels || part.height != first.height || part.width != first.width {
			return nil, errors.Errorf("datasets: %s: all splits must have images of the same shape, got %[2]s of %dx%dx%d and %s of %dx%dx%d",
				path, Split(split), part.channels, part.height, part.width, Split(begin), first.channels, first.height, first.width)
		}
		d := part.dataset(path, s.hashes)
		d.Name = nameOf(path)
		if part.labels != nil {
			d.Labels, d.Classes, d.ClassNames = part.labels, len(classNames), classNames
		}
		all[split] = d
	}
	return &Splits{Train: all[Train], Validation: all[Validation], Test: all[Test]}, nil
}

// labelled returns the parts that have labels, and the test images without labels if the options
// accept them.
func (s arraySet) labelled(path string, options Options) (parts [3]*arrayPart, test *arrayPart, err error) {
	var without []string
	for split, part := range s.parts {
		switch {
		case part == nil:
		case part.labels != nil:
			parts[split] = part
		case Split(split) == Test && options.Unlabelled:
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
		return parts, nil, errors.WithStack(NoClassesError{path, problem})
	}
	for _, name := range without {
		options.remark("%s: left out, since it has no labels", filepath.Base(name))
	}
	return parts, test, nil
}

// dataset makes a data set of images without labels.
func (p *arrayPart) dataset(path string, hashes map[string]string) *Dataset {
	d := &Dataset{
		Images: p.images, Channels: p.channels, Height: p.height, Width: p.width, Groups: p.groups,
		Place: filepath.Dir(path), Hashes: hashes,
	}
	d.Mean, d.Std = moments(p.images, p.channels, p.height*p.width)
	return d
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
