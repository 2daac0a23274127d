package datasets

import (
	"cmp"
	"fmt"
	"maps"
	"path/filepath"
	"regexp"
	"slices"

	"github.com/pkg/errors"
)

// tree is the content of an image directory.
type tree struct {
	root    string
	label   string      // heading of the column with the labels, "" for class directories
	splits  [3]*listing // by Split; only Train if the directory has no splits
	remarks []string
	flat    [3][]string // by Split: directories or Parquet files of images without classes
	lacks   string      // what these lack
}

// classes returns the classes of the training images, or of all images if there are none.
func (t tree) classes() []string {
	if t.splits[Train] != nil {
		return t.splits[Train].classes()
	}
	all := &listing{}
	for _, list := range present(t.splits) {
		all.images = append(all.images, list.images...)
	}
	return all.classes()
}

// scan lists the image files below a directory.
func (o Options) scan(root string) (tree, error) { return o.list(root, (*scanner).scan) }

// scanTable lists the image files that a label table names.
func (o Options) scanTable(path string) (tree, error) {
	return o.list(filepath.Dir(path), func(s *scanner) ([3]*listing, error) { return s.table(filepath.Base(path)) })
}

// list lists the image files that a scanner finds below a directory.
func (o Options) list(root string, scan func(*scanner) ([3]*listing, error)) (tree, error) {
	s := newScanner(o, root)
	found := tree{root: root}
	var err error
	if found.splits, err = scan(s); err != nil {
		return found, err
	}
	found.label = s.label
	if err := s.checkClasses(found.splits); err != nil {
		return found, err
	}
	for _, name := range slices.Sorted(maps.Keys(s.looked)) {
		s.remark(name, "not read: must have a column of files, such as %s, and one of classes, such as %s, got the columns %s",
			fileHeadings[1], classHeadings[2], s.looked[name])
	}
	s.remarkLeftOut()
	found.remarks, found.flat, found.lacks = s.remarks, s.flat, "no class directories and no table of classes"
	return found, nil
}

// scan lists the image files by split.
func (s *scanner) scan() ([3]*listing, error) {
	at := ""
	for range maxDepth {
		entries, err := s.readDir(at)
		if err != nil {
			return [3]*listing{}, err
		}
		dirs, err := splitDirs(s.path(at), entries)
		if err != nil {
			return [3]*listing{}, err
		}
		if dirs[Train] != "" {
			return s.splits(at, entries, dirs)
		}
		next, err := s.only(at, entries)
		if err != nil {
			return [3]*listing{}, err
		}
		if next == "" {
			break
		}
		if split, _ := splitOf(lastPart(next)); split == Test || split == Validation {
			s.remark(next, "the only directory, though it is named as a part: its images are taken as all images, to train on as well")
		}
		at = next
	}
	return s.labelled(at)
}

// splits lists the image files in the directories of the splits below a directory.
func (s *scanner) splits(at string, entries []dirEntry, dirs [3]string) (splits [3]*listing, err error) {
	for split, name := range dirs {
		if name == "" {
			continue
		}
		lists, err := s.labelled(join(at, name))
		var flat *NoClassesError
		if errors.As(err, &flat) {
			tables, err := s.labelTables(at, entries, true)
			if err != nil {
				return splits, err
			}
			named := slices.ContainsFunc(tables, func(t *table) bool { return t.splitByName() == Split(split) })
			if len(tables) > 0 && Split(split) == Train || len(tables) > 1 && named {
				return s.listed(at, tables)
			}
			images, err := s.walk(nil, join(at, name), "")
			if err != nil {
				return splits, err
			}
			if Split(split) != Train && len(images) > 0 {
				s.flat[split] = []string{join(at, name)}
				continue
			}
		}
		if err != nil {
			return splits, err
		}
		splits[split] = lists[Train]
		for other, list := range lists {
			if list != nil && Split(other) != Train {
				return splits, errors.Errorf("datasets: %s: must be either directories for the splits or a column of splits in %s, got both",
					s.path(join(at, name)), list.tables[0].name)
			}
		}
	}
	var ignored []string
	for _, entry := range entries {
		if !slices.Contains(dirs[:], entry.base()) && (entry.isDir || IsImage(entry.name) || isTable(entry)) {
			ignored = append(ignored, entry.base())
		}
	}
	if len(ignored) > 0 {
		s.remark("", "ignored, next to the directories of the splits: %s", abbreviated(ignored))
	}
	return splits, nil
}

// splitDirs finds the directories of the splits: train or training, in any case, with test or val
// next to it. All may have the same prefix that ends in a dash, dot, underscore or space, such as
// Final_Training and Final_Test. Without a second split, a directory called train is a class.
func splitDirs(place string, entries []dirEntry) ([3]string, error) {
	byPrefix := map[string]*[3]string{}
	for _, entry := range entries {
		split, prefix := splitOf(entry.base())
		if !entry.isDir || split < 0 {
			continue
		}
		if byPrefix[prefix] == nil {
			byPrefix[prefix] = new([3]string)
		}
		known := &byPrefix[prefix][split]
		if *known != "" {
			return [3]string{}, errors.Errorf("datasets: %s: must have one %[4]s directory, got %[2]s and %[3]s: "+
				"move one of them elsewhere, or all images into one", place, *known, entry.base(), split)
		}
		*known = entry.base()
	}
	var prefixes []string
	for prefix, dirs := range byPrefix {
		if dirs[Train] != "" && (dirs[Test] != "" || dirs[Validation] != "") {
			prefixes = append(prefixes, prefix)
		}
	}
	slices.Sort(prefixes)
	if len(prefixes) == 0 {
		return [3]string{}, nil
	}
	if len(prefixes) > 1 && prefixes[0] != "" {
		return [3]string{}, errors.Errorf("datasets: %s: must have one pair of training and test directories, got %s... and %s...: open one of them",
			place, prefixes[0], prefixes[1])
	}
	return *byPrefix[prefixes[0]], nil
}

// only returns the single subdirectory to descend into if a directory contains nothing else, as in
// many unpacked archives, or "" for the directory itself.
func (s *scanner) only(dir string, entries []dirEntry) (string, error) {
	var dirs []string
	for _, entry := range entries {
		if entry.isDir {
			dirs = append(dirs, entry.name)
		} else if IsImage(entry.name) {
			return "", nil
		}
	}
	if tables, err := s.labelTables(dir, entries, false); err != nil || tables != nil || len(dirs) != 1 {
		return "", err
	}
	inside, err := s.readDir(dirs[0])
	if err != nil {
		return "", err
	}
	tables, err := s.labelTables(dirs[0], inside, false)
	if err != nil || tables != nil {
		return dirs[0], err
	}
	for _, entry := range inside {
		if !entry.isDir && IsImage(entry.name) {
			return "", nil // the directory is the only class
		}
	}
	return dirs[0], nil
}

// labelled lists the image files of a directory with their classes, from their names if the options
// say so, from its label tables or from its subdirectories. All are in Train, unless a table has
// splits.
func (s *scanner) labelled(dir string) ([3]*listing, error) {
	if pattern, err := s.options.labelPattern(); pattern != nil || err != nil {
		list, err := s.byName(dir, pattern)
		return [3]*listing{Train: list}, err
	}
	var entries []dirEntry
	for range maxDepth {
		var err error
		if entries, err = s.readDir(dir); err != nil {
			return [3]*listing{}, err
		}
		next, err := s.only(dir, entries)
		if err != nil {
			return [3]*listing{}, err
		}
		if next == "" {
			break
		}
		dir = next
	}
	tables, err := s.labelTables(dir, entries, false)
	if err != nil {
		return [3]*listing{}, err
	}
	if tables != nil {
		return s.listed(dir, tables)
	}
	list, err := s.classDirs(dir, entries)
	return [3]*listing{Train: list}, err
}

// byName lists the image files below a directory whose names have a class by a pattern.
func (s *scanner) byName(dir string, pattern *regexp.Regexp) (*listing, error) {
	images, err := s.walk(nil, dir, "")
	if err != nil {
		return nil, err
	}
	list := &listing{dir: dir}
	var without []string
	for _, image := range images {
		found := pattern.FindStringSubmatch(image.name)
		if found == nil || found[1] == "" {
			without = append(without, image.name)
			continue
		}
		if image.class = canonicalClass(found[1]); checkClass(image.class) != nil {
			return nil, errors.WithMessagef(checkClass(image.class), "datasets: %s", s.path(image.name))
		}
		list.images = append(list.images, image)
	}
	switch {
	case len(list.images) == 0:
		return nil, errors.WithStack(&NoClassesError{s.path(dir),
			fmt.Sprintf("must have images with a class by %s, got none in %d%s", s.options.Label, len(images), suchAs(without))})
	case len(without) > 0:
		s.remark(dir, "%d of %d images have no class by %s, and are left out%s", len(without), len(images), s.options.Label, suchAs(without))
	}
	s.label = s.options.Label
	slices.SortStableFunc(list.images, func(a, b imageFile) int { return compareClasses(a.class, b.class) })
	return list, nil
}

// suchAs returns the end of a message, with the first name if there is one.
func suchAs(names []string) string {
	if len(names) == 0 {
		return ""
	}
	return ", such as " + names[0]
}

// classDirs lists the image files of a directory that has a directory for each class.
func (s *scanner) classDirs(dir string, entries []dirEntry) (*listing, error) {
	found := &listing{dir: dir}
	owners := map[string]string{}
	var empty []string
	for _, entry := range entries {
		if !entry.isDir {
			if IsImage(entry.name) {
				found.skipped = append(found.skipped, entry.name+": is in no class directory")
			} else {
				s.leftOut[entry.name] = true
			}
			continue
		}
		class := canonicalClass(entry.base())
		if err := checkClass(class); err != nil {
			return nil, errors.WithMessagef(err, "datasets: %s", s.path(dir))
		}
		if other := owners[class]; other != "" {
			if _, number := classNumber(class); number {
				return nil, errors.Errorf("datasets: %s: class %[4]s must have one directory, got %[2]s and %[3]s", s.path(dir), other, entry.base(), class)
			}
			s.remark(dir, "the directories %+q and %+q are one class", other, entry.base())
		}
		owners[class] = entry.base()
		if splitNamed(class) >= 0 {
			s.remark(dir, "the directory %s is a class: splits need a training directory and a test or validation directory", entry.base())
		}
		before := len(found.images)
		var err error
		if found.images, err = s.walk(found.images, entry.name, class); err != nil {
			return nil, err
		}
		if len(found.images) == before {
			got := s.leftOutOf(entry.name)
			if got == "" {
				empty = append(empty, entry.base())
				continue
			}
			return nil, errors.Errorf("datasets: %s: directory %s must have an image (%s), since each directory is a class, got %s: "+
				"convert these files, or move the directory elsewhere", s.path(dir), entry.base(), extensions(), got)
		}
	}
	if len(found.images) == 0 {
		return nil, s.noClasses(dir, entries)
	}
	if len(empty) > 0 {
		s.remark(dir, "empty directories, which are no classes: %s", abbreviated(empty))
	}
	slices.SortStableFunc(found.images, func(a, b imageFile) int { return compareClasses(a.class, b.class) })
	if inside := found.sameInside(); inside != nil {
		s.remark(dir, "the classes are %s, and each of these directories has the directories %s: if those are the classes, "+
			"list the files and their classes in a CSV file with the columns %s and %s",
			abbreviated(found.classes()), abbreviated(inside), fileHeadings[1], classHeadings[2])
	}
	return found, nil
}

// noClasses returns the error for a directory without classes, which describes what the directory
// contains.
func (s *scanner) noClasses(dir string, entries []dirEntry) error {
	var names []string
	for _, name := range slices.Sorted(maps.Keys(s.looked)) {
		names = append(names, name+" with the columns "+s.looked[name])
	}
	if names == nil {
		for _, entry := range entries {
			names = append(names, entry.base())
		}
	}
	found := "nothing"
	if len(names) > 0 {
		found = abbreviated(names)
	}
	switch {
	case len(s.looked) > 0:
		found += s.options.labelAdvice()
	case slices.ContainsFunc(entries, func(e dirEntry) bool { return !e.isDir && IsImage(e.name) }):
		found += cmp.Or(labelFiles(s.path(dir), entries),
			"; if the classes are in the names of the files, give a pattern as label, such as file=([^/]+)_ for Bengal_1.jpg")
	}
	if at := slices.IndexFunc(entries, func(e dirEntry) bool { return !e.isDir && conversion(e.name) != "" }); at >= 0 {
		found += ": " + conversion(s.path(entries[at].name))
	}
	return errors.WithStack(&NoClassesError{s.path(dir),
		"must have a directory of images for each class, or a CSV or JSON file with columns of files and classes, got " + found})
}

// checkClasses returns an error if a split has a class that training lacks, and remarks on classes
// whose names may be mistakes.
func (s *scanner) checkClasses(splits [3]*listing) error {
	training := splits[Train]
	if training == nil {
		return nil
	}
	known := training.classes()
	for split, list := range present(splits) {
		if split == Train {
			continue
		}
		for _, class := range list.classes() {
			if !slices.Contains(known, class) {
				return errors.Errorf("datasets: %s: the classes of %s images must be among those of the training images in %[4]s: %[5]s, got %[3]q: "+
					"move it elsewhere, or train on images of it", s.path(list.dir), split, class, training.dir, abbreviated(known))
			}
		}
	}
	if first, second, pairs := twinClasses(known); pairs == 1 {
		s.remark("", "the classes %q and %q differ only in upper and lower case or in space: are they one?", first, second)
	} else if pairs > 1 {
		s.remark("", "%d pairs of classes differ only in upper and lower case or in space, such as %q and %q: are they one each?", pairs, first, second)
	}
	if joined := joinedClasses(known); len(joined) > 0 {
		s.remark("", "classes that join others are classes of their own, since an image has one: %s", abbreviated(joined))
	}
	return nil
}
