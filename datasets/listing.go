package datasets

import "slices"

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
