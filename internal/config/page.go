package config

import (
	"os"
	"path/filepath"
	"strings"

	"github.com/pollen-ml/pollen/datasets"
)

// CheckPage returns an error if a page cannot be written into dir because its figures would be
// mistaken for input images: dir contains images but no page, or is one of the given image
// directories, or is inside one; or because dir is a file. It accepts "".
func CheckPage(dir string, images ...string) error {
	if dir == "" {
		return nil
	}
	if info, err := os.Stat(dir); err == nil && !info.IsDir() {
		return Usagef("pollen: --page must be a directory, got the file %s", dir)
	}
	refused := func(place string) error {
		return Usagef("pollen: --page must be a directory without input images, got %s, which has %s", dir, place)
	}
	if _, err := os.Stat(filepath.Join(dir, "report.html")); err != nil {
		there, _ := os.ReadDir(dir) // it may not exist yet
		for _, entry := range there {
			if datasets.IsImage(entry.Name()) {
				return refused(filepath.Join(dir, entry.Name()))
			}
		}
	}
	for _, path := range images {
		from, _ := filepath.Abs(path) // fails without a current directory
		to, _ := filepath.Abs(dir)
		if up, err := filepath.Rel(from, to); err == nil && up != ".." && !strings.HasPrefix(up, ".."+string(filepath.Separator)) {
			return refused(path)
		}
	}
	return nil
}

// CheckParent returns a UsageError unless the directory of the file or directory that a flag names
// exists, so that a mistake is found before the work is done. "" is no file.
func CheckParent(flag, path string) error {
	if path == "" {
		return nil
	}
	parent := filepath.Dir(path)
	if info, err := os.Stat(parent); err != nil || !info.IsDir() {
		return Usagef("pollen: --%s %s: %s is not a directory", flag, path, parent)
	}
	return nil
}
