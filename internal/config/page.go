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
func CheckPage(folder string, pictures ...string) error {
	if folder == "" {
		return nil
	}
	refused := func(place string) error {
		return Mistake("train: page: %s is among your pictures (%s), and its figures would be taken for some of them: name another folder", folder, place)
	}
	if _, err := os.Stat(filepath.Join(folder, "report.html")); err != nil {
		there, _ := os.ReadDir(folder) // it may have to be made
		for _, entry := range there {
			if datasets.IsPicture(entry.Name()) {
				return refused(filepath.Join(folder, entry.Name()))
			}
		}
	}
	for _, path := range pictures {
		from, _ := filepath.Abs(path) // fails where there is no current folder
		to, _ := filepath.Abs(folder)
		if up, err := filepath.Rel(from, to); err == nil && up != ".." && !strings.HasPrefix(up, ".."+string(filepath.Separator)) {
			return refused(path)
		}
	}
	return nil
}
