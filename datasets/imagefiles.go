package datasets

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	"github.com/pkg/errors"
)

// listFiles returns the given files, and all image files below the given directories. failed has
// the paths that do not exist or cannot be listed, and the directories without images.
func listFiles(paths []string, options Options) (files []string, failed []ImageError) {
	for _, path := range paths {
		info, err := os.Stat(path)
		if err == nil && !info.IsDir() {
			files = append(files, path)
			continue
		}
		var found []imageFile
		if err == nil {
			s := newScanner(options.context(), path)
			found, err = s.walk(nil, "", "")
			s.remarkLeftOut()
			for _, remark := range s.remarks {
				options.remark("%s", remark)
			}
		}
		if err == nil && len(found) == 0 {
			err = errors.Errorf("must have images (%s), got none", extensions())
		}
		if err != nil {
			var named *os.PathError
			if errors.As(err, &named) && named.Path == path {
				err = named.Err
			}
			failed = append(failed, ImageError{path, err})
			continue
		}
		for _, p := range found {
			files = append(files, filepath.Join(path, filepath.FromSlash(p.name)))
		}
	}
	return files, failed
}

// readFiles reads the images at paths without arrays; listed is their number. The data set has no
// images if none can be read.
func readFiles(paths []string, options Options) (images *Dataset, failed []ImageError, listed int, err error) {
	files, failed := listFiles(paths, options)
	images = &Dataset{Name: "images"}
	if len(files) == 0 {
		return images, failed, 0, nil
	}
	subject := files[0]
	if len(files) > 1 {
		subject = strconv.Itoa(len(files)) + " images"
	}
	all, s, err := imageFiles{subject, files, files, len(files)}.decode(options)
	if err != nil {
		return nil, nil, 0, err
	}
	for _, remark := range all.remarks {
		options.remark("%s", remark)
	}
	images.Cropped, images.Bits = options.Crop, options.Bits
	images.Images, images.Channels, images.Height, images.Width = all.images, s.channels, s.height, s.width
	images.Hashes = map[string]string{"images": all.hash}
	for _, i := range all.kept {
		images.Files = append(images.Files, files[i])
	}
	if len(all.kept) > 0 {
		images.Mean, images.Std = moments(images.Images, s.channels, s.height*s.width)
	}
	return images, append(failed, all.failed...), len(files), nil
}

// without returns the data set with the files that could not be read, or an error if these are more
// than the options allow.
func (d *Dataset) without(failed []ImageError, options Options) (*Dataset, error) {
	for _, f := range failed {
		d.Skipped = append(d.Skipped, f.Error())
	}
	d.Failed = failed
	subject := fmt.Sprintf("%d images", len(d.Files)+len(failed))
	if len(d.Files) == 0 && len(failed) == 1 {
		subject = failed[0].File
	}
	return d, checkSkipped(subject, d.Skipped, len(d.Files), options)
}
