package datasets

import (
	"slices"
	"strings"
)

// listing has the image files of a split, in order.
type listing struct {
	dir     string // directory of the split, relative to the root, with slashes
	images  []imageFile
	skipped []string    // "name: reason"
	tables  []imageFile // CSV files with the classes
}

// classes returns the class names of the listing, in order.
func (l *listing) classes() []string {
	seen := map[string]bool{}
	var names []string
	for _, p := range l.images {
		if !seen[p.class] {
			seen[p.class] = true
			names = append(names, p.class)
		}
	}
	slices.SortFunc(names, compareClasses)
	return names
}

// sameInside returns the names of the directories that all directories of the listing have, if they
// are the same in each, and there are several. It returns nil if there are files next to them, and
// for names that may be numbered parts, such as video1, or splits.
func (l *listing) sameInside() []string {
	inside := map[string][]string{}
	for _, image := range l.images {
		parts := strings.Split(strings.TrimPrefix(strings.TrimPrefix(image.name, l.dir), "/"), "/")
		if len(parts) < 3 || splitNamed(parts[1]) >= 0 || parts[1][len(parts[1])-1] >= '0' && parts[1][len(parts[1])-1] <= '9' {
			return nil
		}
		if !slices.Contains(inside[parts[0]], parts[1]) {
			inside[parts[0]] = append(inside[parts[0]], parts[1])
		}
	}
	var names []string
	for _, list := range inside {
		slices.Sort(list)
		if names != nil && !slices.Equal(names, list) || len(list) < 2 {
			return nil
		}
		names = list
	}
	if len(inside) < 2 {
		return nil
	}
	return names
}

// groups returns the groups of files in the label tables, or nil if there are none.
func (l *listing) groups(files []string) []string {
	byName := map[string]string{}
	for _, image := range l.images {
		if image.group != "" {
			byName[image.name] = image.group
		}
	}
	if len(byName) == 0 {
		return nil
	}
	groups := make([]string, len(files))
	for i, file := range files {
		groups[i] = byName[file]
	}
	return groups
}
