package datasets

import (
	"os"
	"path/filepath"

	"github.com/pkg/errors"
)

// ImageError is the reason why an image file could not be read.
type ImageError struct {
	File string
	Err  error
}

// Error names the file.
func (e ImageError) Error() string { return e.File + ": " + e.Err.Error() }

// Unwrap returns the reason.
func (e ImageError) Unwrap() error { return e.Err }

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
