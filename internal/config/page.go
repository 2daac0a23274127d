package config

import (
	"os"
	"path/filepath"
	"strings"

	"github.com/pollen-ml/pollen/datasets"
)

// CheckPage refuses a folder for a page that has pictures without being a page's already, or that
// is one of the given folders of pictures or lies in one: figures would be taken for some of them.
// A folder that is "" is none.
func CheckPage(dir string, images ...string) error {
	if dir == "" {
		return nil
	}
	refused := func(place string) error {
		return Usagef("pollen: page: %s is among your pictures (%s), and its figures would be taken for some of them: name another folder", dir, place)
	}
	if _, err := os.Stat(filepath.Join(dir, "report.html")); err != nil {
		there, _ := os.ReadDir(dir) // it may have to be made
		for _, entry := range there {
			if datasets.IsImage(entry.Name()) {
				return refused(filepath.Join(dir, entry.Name()))
			}
		}
	}
	for _, path := range images {
		from, _ := filepath.Abs(path) // fails where there is no current folder
		to, _ := filepath.Abs(dir)
		if up, err := filepath.Rel(from, to); err == nil && up != ".." && !strings.HasPrefix(up, ".."+string(filepath.Separator)) {
			return refused(path)
		}
	}
	return nil
}
