package datasets

import (
	"cmp"
	"fmt"
	"maps"
	"path/filepath"
	"strings"

	"github.com/pkg/errors"
)

// readArrays implements ReadImages for paths if at least one has arrays. A file of arrays that
// cannot be read counts as one failed file.
func readArrays(paths []string, options Options, remarks *remarks) (*Dataset, error) {
	var parts []*Dataset
	var failed []ImageError
	options.Unlabelled = true
	var files []string // paths that are not arrays and follow each other
	readFiles := func() error {
		if len(files) == 0 {
			return nil
		}
		images, broken, _, err := readFiles(files, options)
		if err != nil {
			return err
		}
		if files, failed = nil, append(failed, broken...); len(images.Files) > 0 {
			parts = append(parts, images)
			options.Channels, options.Height, options.Width = images.Channels, images.Height, images.Width
		}
		return nil
	}
	for _, path := range paths {
		arrays := options.arraysAt(path)
		if arrays == nil {
			files = append(files, path)
			continue
		}
		if err := readFiles(); err != nil {
			return nil, err
		}
		more := parts
		set, err := arrays.read(path, options)
		if err == nil {
			more, err = set.appendImages(parts, path, options)
		}
		if ended := options.context().Err(); ended != nil || isMemory(err) {
			return nil, cmp.Or(err, ended)
		}
		if err == nil {
			parts = more
		} else {
			failed = append(failed, ImageError{path, errors.New(withoutPath(err, path))})
		}
		if len(parts) > 0 {
			options.Channels, options.Height, options.Width = parts[0].Channels, parts[0].Height, parts[0].Width
		}
	}
	if err := readFiles(); err != nil {
		return nil, err
	}
	if len(parts) == 0 {
		return (&Dataset{}).without(failed, options)
	}
	all, err := joined(parts, remarks.texts)
	if err != nil {
		return nil, err
	}
	return all.without(failed, options)
}

// appendImages appends a data set for each part, in the options' shape.
func (s arraySet) appendImages(to []*Dataset, path string, options Options) ([]*Dataset, error) {
	count, images := 0, 0
	for _, part := range s.parts {
		if part != nil {
			count++
			images += part.count()
		}
	}
	if most := options.limits.Images; most > 0 && images > most {
		return to, errors.Errorf("datasets: %s: must have at most %[3]d images, got %[2]d", path, images, most)
	}
	for _, split := range []Split{Train, Validation, Test} {
		part := s.parts[split]
		if part == nil {
			continue
		}
		name := part.name
		if count == 1 && strings.HasPrefix(name, path+": ") {
			name = path
		}
		d := part.dataset(path, s.hashes, options)
		for i := range d.Len() {
			d.Files = append(d.Files, fmt.Sprintf("%s[%d]", name, i))
		}
		d.IDs, d.IDName = part.ids, part.idName
		if h, w, c := options.Height, options.Width, options.Channels; h > 0 && (h != d.Height || w != d.Width || c > 0 && c != d.Channels) {
			options.remark("%s: images of %dx%dx%d become %dx%dx%d", filepath.Base(name), d.Height, d.Width, d.Channels, h, w, cmp.Or(c, d.Channels))
		}
		d, err := d.reshaped(options.Channels, options.Height, options.Width, options.Crop)
		if err != nil {
			return to, err
		}
		options.Channels, options.Height, options.Width = d.Channels, d.Height, d.Width
		to = append(to, d)
	}
	return to, nil
}

// joined joins data sets of one shape without labels.
func joined(parts []*Dataset, remarks []string) (*Dataset, error) {
	if len(parts) == 0 {
		return nil, errors.New("datasets: arrays: must have images, got none")
	}
	all := *parts[0]
	all.Name, all.Place, all.Remarks = "images", "", remarks
	all.Hashes = map[string]string{}
	if len(parts) > 1 {
		all.Images = nil
		for _, part := range parts {
			all.Images = append(all.Images, part.Images...)
		}
	}
	all.Files, all.IDs = nil, nil
	for _, part := range parts {
		if part.IDs == nil || part.IDName != all.IDName {
			all.IDName = ""
		}
		all.IDs = append(all.IDs, part.IDs...)
		all.Files = append(all.Files, part.Files...)
		maps.Copy(all.Hashes, part.Hashes)
	}
	if all.IDName == "" && len(parts) > 1 {
		all.IDs = nil
	}
	all.Mean, all.Std = moments(all.Images, all.Channels, all.Height*all.Width)
	return &all, all.Validate()
}
