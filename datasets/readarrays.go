package datasets

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"strings"

	"github.com/pkg/errors"
)

// arraysAt returns the function that reads the arrays at a path, or nil if there are none.
func arraysAt(path string) func(path string, options Options) (arraySet, error) {
	if _, err := os.Stat(path); err != nil {
		return nil // reported when it is opened
	}
	for _, format := range formats() {
		if format.arrays != nil && format.recognise(path) {
			return format.arrays
		}
	}
	return nil
}

// readArrays is ReadImages if a path has arrays. Arrays that cannot be read are one failure.
func readArrays(paths []string, options Options, remarks *[]string) (*Dataset, error) {
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
		}
		return nil
	}
	for _, path := range paths {
		read := arraysAt(path)
		if read == nil {
			files = append(files, path)
			continue
		}
		if err := readFiles(); err != nil {
			return nil, err
		}
		more := parts
		set, err := read(path, options)
		if err == nil {
			more, err = set.appendImages(parts, path, options)
		}
		if ended := options.context().Err(); ended != nil || isMemory(err) {
			return nil, cmp.Or(err, ended)
		}
		if err == nil {
			parts = more
		} else {
			text := strings.TrimPrefix(err.Error(), "datasets: ")
			failed = append(failed, ImageError{path, errors.New(strings.TrimPrefix(text, path+": "))})
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
	all, err := joined(parts, *remarks)
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
		d := part.dataset(path, s.hashes)
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

func isNPY(path string) bool { return !isDir(path) && strings.EqualFold(filepath.Ext(path), ".npy") }

// readNPYFile reads the images of a file as written by numpy.save: one image [H W], [H W C] or [C H
// W], or several, see imagesOf. Three dimensions are one image if the last is 3 or 4, or if the
// first is 3 or 4 and the options' number of channels; the sides of the image are then more than 4.
func readNPYFile(path string, options Options) (arraySet, error) {
	file, err := openFile(path)
	if err != nil {
		return arraySet{}, errors.Wrap(err, "datasets")
	}
	defer file.Close()
	return readNPYImages(path, file, options)
}

// readNPYImages reads the images of a .npy file from a reader.
func readNPYImages(path string, from io.Reader, options Options) (arraySet, error) {
	hash := sha256.New()
	array, err := readNPY(path, io.TeeReader(from, hash), options.limit(npyMaxSize), options.imageUse())
	if err != nil {
		return arraySet{}, err
	}
	single := ""
	shape := array.shape
	isColour := func(n int) bool { return n == 3 || n == 4 }
	switch {
	case len(shape) == 2:
		array.shape = []int{1, shape[0], shape[1]}
	case len(shape) == 3 && isColour(shape[2]) && min(shape[0], shape[1]) > 4:
		single = "[H W C]"
	case len(shape) == 3 && isColour(shape[0]) && shape[0] == options.Channels && min(shape[1], shape[2]) > 4:
		single = "[C H W]"
	}
	if single != "" {
		options.remark("%s: dimensions %v are read as one image %s", filepath.Base(path), shape, single)
		array.shape = append([]int{1}, shape...)
	}
	part, err := imagesOf(path, array, 0, options)
	if err != nil {
		return arraySet{}, err
	}
	return arraySet{parts: [3]*arrayPart{Test: part}, hashes: map[string]string{filepath.Base(path): hex.EncodeToString(hash.Sum(nil))}}, nil
}

// isIDXFile reports whether a file that does not have the name of an image is an IDX file of
// images.
func isIDXFile(path string) bool {
	if !isRegular(path) || IsImage(path) {
		return false
	}
	file, err := openFile(path)
	if err != nil {
		return false
	}
	defer file.Close()
	return beginsLikeIDX(file)
}

// beginsLikeIDX reports whether data, which may be compressed, begin with the magic number of
// bytes.
func beginsLikeIDX(from io.Reader) bool {
	data, err := decompress(from)
	if err != nil {
		return false
	}
	magic, err := data.Peek(4)
	return err == nil && bytes.Equal(magic[:3], []byte{0, 0, idxUnsignedByte}) && magic[3] <= idxMaxRank
}

// readIDXPath reads the images of one IDX file.
func readIDXPath(path string, _ Options) (arraySet, error) {
	set := arraySet{hashes: map[string]string{}}
	part, err := readIDXImages(path, set.hashes)
	set.parts[Test] = part
	return set, err
}
