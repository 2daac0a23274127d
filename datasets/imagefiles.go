package datasets

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/pkg/errors"
)

// listFiles returns the given image files, and all images below the given directories, in the given
// Parquet files and in the given label tables. failed has the paths that do not exist or cannot be
// listed, and the directories without images.
func listFiles(paths []string, options Options) (images []encodedImage, failed []ImageError, err error) {
	for _, path := range paths {
		info, err := os.Stat(path)
		var found []encodedImage
		var missing []ImageError
		switch {
		case err != nil:
		case options.isTableFile(path):
			found, missing, err = listTable(path, options)
		case isParquet(path):
			found, err = listRows(path, options)
		case info.IsDir():
			found, err = listDir(path, options)
		case conversion(path) != "":
			err = errors.New(conversion(path))
		default:
			found = []encodedImage{{name: path, path: path}}
		}
		if ended := options.context().Err(); ended != nil || isMemory(err) {
			return nil, nil, cmp.Or(err, ended)
		}
		if err != nil {
			var named *os.PathError
			if errors.As(err, &named) && named.Path == path {
				err = named.Err
			}
			if text := withoutPath(err, path); text != err.Error() {
				err = errors.New(text)
			}
			failed = append(failed, ImageError{path, err})
			continue
		}
		images, failed = append(images, found...), append(failed, missing...)
	}
	return images, failed, nil
}

// listTable returns the image files that a label table names. missing has those that do not exist.
func listTable(path string, options Options) (images []encodedImage, missing []ImageError, err error) {
	s := newScanner(options, filepath.Dir(path))
	t, index, err := s.tableAt(filepath.Base(path))
	if err != nil {
		return nil, nil, err
	}
	if !t.guessFile(index) {
		return nil, nil, errors.Errorf("must have a column of files, such as %s, got %s", fileHeadings[1], t.described())
	}
	for _, row := range s.match(t, index) {
		name := filepath.Join(s.root, filepath.FromSlash(row.match.image.name))
		switch row.match.count {
		case 0:
			missing = append(missing, ImageError{s.path(comparedName(row.name)), errors.New("listed in " + t.entry.base() + " but missing")})
		case 1:
			images = append(images, encodedImage{name: name, path: name})
		default:
			return nil, nil, s.ambiguous(t, row)
		}
	}
	for _, remark := range s.remarks {
		options.remark("%s", remark)
	}
	return images, missing, nil
}

// withoutPath returns the text of an error about a path that is named next to it.
func withoutPath(err error, path string) string {
	return strings.TrimPrefix(strings.TrimPrefix(err.Error(), "datasets: "), path+": ")
}

// listDir returns all image files below a directory.
func listDir(path string, options Options) (images []encodedImage, err error) {
	s := newScanner(options, path)
	found, err := s.walk(nil, "", "")
	if err != nil {
		return nil, err
	}
	s.remarkLeftOut()
	for _, remark := range s.remarks {
		options.remark("%s", remark)
	}
	if len(found) == 0 {
		return nil, errors.Errorf("must have images (%s), got none", extensions())
	}
	for _, p := range found {
		name := filepath.Join(path, filepath.FromSlash(p.name))
		images = append(images, encodedImage{name: name, path: name})
	}
	return images, nil
}

// readFiles reads the images at paths without arrays; listed is their number. The data set has no
// images if none can be read.
func readFiles(paths []string, options Options) (images *Dataset, failed []ImageError, listed int, err error) {
	files, failed, err := listFiles(paths, options)
	images = &Dataset{Name: "images"}
	if len(files) == 0 || err != nil {
		return images, failed, 0, err
	}
	subject := files[0].name
	if len(files) > 1 {
		subject = strconv.Itoa(len(files)) + " images"
	}
	all, s, err := imageFiles{subject, files, len(files)}.decode(options)
	if err != nil {
		return nil, nil, 0, err
	}
	options.remarkDecoded(all.remarks)
	images.Cropped, images.Bits = options.Crop, options.Bits
	images.Images, images.Channels, images.Height, images.Width = all.images, s.channels, s.height, s.width
	images.Hashes = map[string]string{"images": all.hash}
	for _, i := range all.kept {
		images.Files = append(images.Files, files[i].name)
	}
	images.IDs, images.IDName = identifiers(files, all.kept)
	if len(all.kept) > 0 {
		images.Mean, images.Std = moments(images.Images, s.channels, s.height*s.width)
	}
	return images, append(failed, all.failed...), len(files), nil
}

// identifiers returns the identifiers of images, and the name of their column, if all images have
// them in columns of the same name.
func identifiers(images []encodedImage, kept []int) (ids []string, name string) {
	for _, i := range kept {
		s := images[i].shard
		if s == nil || s.idName == "" || name != "" && s.idName != name {
			return nil, ""
		}
		ids, name = append(ids, images[i].id), s.idName
	}
	return ids, name
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
