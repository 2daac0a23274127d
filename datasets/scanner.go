package datasets

import (
	"cmp"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/pkg/errors"
)

// scanner lists the files of an image directory, and collects what the user should know about them.
type scanner struct {
	root    string
	options Options
	label   string                 // heading of the column with the labels, once listed
	indices map[string]*imageIndex // by directory, see index
	leftOut map[string]bool        // names of the files that are not images by their extension
	parsed  map[string]*table      // CSV and JSON files that were read, by name
	looked  map[string]string      // columns of those that are not label tables, by name
	tables  map[string]bool        // names of those that were searched for labels
	remarks []string
	flat    [3][]string // by Split: a directory of images without classes
}

func newScanner(o Options, root string) *scanner {
	return &scanner{
		options: o, root: root, indices: map[string]*imageIndex{},
		leftOut: map[string]bool{}, parsed: map[string]*table{}, looked: map[string]string{}, tables: map[string]bool{},
	}
}

// path returns the path of a file or directory by its name.
func (s *scanner) path(name string) string { return filepath.Join(s.root, filepath.FromSlash(name)) }

// remark adds a remark on a file or directory, which does not depend on where the root is.
func (s *scanner) remark(name, format string, values ...any) {
	if text := filepath.Join(nameOf(s.root), filepath.FromSlash(name)) + ": " + fmt.Sprintf(format, values...); !slices.Contains(s.remarks, text) {
		s.remarks = append(s.remarks, text)
	}
}

// remarkLeftOut counts the files that are not images by their extension.
func (s *scanner) remarkLeftOut() {
	if left := s.leftOutOf(""); left != "" {
		s.remark("", "left out, since they do not have the extension of an image: %s", left)
	}
}

// leftOutOf counts the files below a directory that are not images, by their extension: "20 .jp2, 1
// without an extension".
func (s *scanner) leftOutOf(dir string) string {
	counts := map[string]int{}
	for name := range s.leftOut {
		extension := cmp.Or(strings.ToLower(filepath.Ext(name)), "without an extension")
		if !s.tables[name] && (dir == "" || strings.HasPrefix(name, dir+"/")) {
			counts[extension]++
		}
	}
	list := slices.SortedFunc(maps.Keys(counts), func(a, b string) int {
		return cmp.Or(cmp.Compare(counts[b], counts[a]), strings.Compare(a, b))
	})
	for i, extension := range list {
		list[i] = fmt.Sprintf("%d %s", counts[extension], extension)
	}
	return abbreviated(list)
}

// readDir is the function readDir below the root, unless the context has ended.
func (s *scanner) readDir(dir string) ([]dirEntry, error) {
	if err := s.options.context().Err(); err != nil {
		return nil, errors.Wrapf(err, "datasets: %s", s.root)
	}
	return readDir(s.root, dir)
}

// walk appends all image files below a directory, by name.
func (s *scanner) walk(images []imageFile, dir, class string) ([]imageFile, error) {
	return s.walkDeeper(images, dir, class, 0)
}

// walkDeeper adds the images of a directory and of those below it, all of one class.
func (s *scanner) walkDeeper(images []imageFile, dir, class string, depth int) ([]imageFile, error) {
	if depth > maxDepth {
		return nil, errors.Errorf("datasets: %s: directories must be at most %d deep (does a link lead back up?)", s.path(dir), maxDepth)
	}
	entries, err := s.readDir(dir)
	for _, entry := range entries {
		switch {
		case entry.isDir:
			if images, err = s.walkDeeper(images, entry.name, class, depth+1); err != nil {
				return nil, err
			}
		case IsImage(entry.name):
			images = append(images, entry.imageFile(class))
		default:
			s.leftOut[entry.name] = true
		}
	}
	return images, err
}

// index returns the images below a directory, to be found by name.
func (s *scanner) index(dir string) (*imageIndex, error) {
	if known := s.indices[dir]; known != nil {
		return known, nil
	}
	images, err := s.walk(nil, dir, "")
	if err != nil {
		return nil, err
	}
	s.indices[dir] = newImageIndex(dir, images)
	return s.indices[dir], nil
}
