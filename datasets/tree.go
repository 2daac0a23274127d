package datasets

import (
	"cmp"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/pkg/errors"
)

// imageFile is a file of an image directory.
type imageFile struct {
	name     string // relative to the directory, with slashes
	class    string // canonical, or ""
	size     int64
	modified int64 // nanoseconds since 1970
}

// listing has the image files of a split, in order.
type listing struct {
	dir     string // directory of the split, relative to the root, with slashes
	images  []imageFile
	skipped []string    // "name: reason"
	tables  []imageFile // CSV files with the classes
}

// tree is the content of an image directory.
type tree struct {
	root    string
	splits  [3]*listing // by Split; only Train if the directory has no splits
	ignored []string    // directories and images next to those of the splits
}

// maxDepth limits the depth of directories, since a link may lead back up.
const maxDepth = 32

// splitWords are the names of the splits' directories, in lower case.
var splitWords = [3][]string{
	Train: {"train", "training"}, Test: {"test", "testing"}, Validation: {"val", "valid", "validation"},
}

// scan lists the image files below a directory.
func scan(root string) (tree, error) {
	found := tree{root: root}
	at := ""
	for range maxDepth {
		entries, err := readDir(root, at)
		if err != nil {
			return found, err
		}
		dirs, err := splitDirs(filepath.Join(root, at), entries)
		if err != nil {
			return found, err
		}
		if dirs[Train] != "" {
			for split, name := range dirs {
				if name == "" {
					continue
				}
				if found.splits[split], err = labelled(root, join(at, name)); err != nil {
					return found, err
				}
			}
			for _, entry := range entries {
				if !slices.Contains(dirs[:], entry.base()) && (entry.isDir || IsImage(entry.name)) {
					found.ignored = append(found.ignored, entry.base())
				}
			}
			return found, found.checkClasses()
		}
		next, err := only(root, at, entries)
		if err != nil {
			return found, err
		}
		if next == "" {
			break
		}
		at = next
	}
	var err error
	found.splits[Train], err = labelled(root, at)
	return found, err
}

// join joins two relative names; the first may be "".
func join(dir, name string) string {
	if dir == "" {
		return name
	}
	return dir + "/" + name
}

// dirEntry is a visible file or directory, with links followed.
type dirEntry struct {
	name           string // relative to the root
	isDir          bool
	size, modified int64
}

// readDir lists a directory's entries by name, without hidden files. It includes dangling links
// with an image's or any other extension, so that decoding reports them. A dangling link without an
// extension, which may be a class directory, is an error.
func readDir(root, dir string) ([]dirEntry, error) {
	entries, err := os.ReadDir(filepath.Join(root, filepath.FromSlash(dir)))
	if err != nil {
		return nil, errors.Wrap(err, "datasets")
	}
	var visible []dirEntry
	for _, entry := range entries {
		if name := entry.Name(); strings.HasPrefix(name, ".") || name == "__MACOSX" {
			continue
		}
		name := join(dir, entry.Name())
		info, err := entry.Info()
		if err == nil && info.Mode()&os.ModeSymlink != 0 {
			info, err = os.Stat(filepath.Join(root, filepath.FromSlash(name)))
		}
		gone := os.IsNotExist(err)
		switch {
		case err == nil:
			visible = append(visible, dirEntry{name, info.IsDir(), info.Size(), info.ModTime().UnixNano()})
		case IsImage(name) || gone && filepath.Ext(name) != "":
			visible = append(visible, dirEntry{name: name})
		case !gone || entry.Type()&os.ModeSymlink != 0: // it may be a class directory
			return nil, errors.Wrap(err, "datasets")
		}
	}
	return visible, nil
}

// base returns the last element of an entry's name.
func (e dirEntry) base() string { return e.name[strings.LastIndexByte(e.name, '/')+1:] }

func (e dirEntry) imageFile(class string) imageFile {
	return imageFile{e.name, class, e.size, e.modified}
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
			return [3]string{}, errors.Errorf("datasets: %s: must have one %[4]s directory, got %[2]s and %[3]s", place, *known, entry.base(), split)
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

// splitOf returns the split of a directory name and the name's prefix, or -1.
func splitOf(name string) (Split, string) {
	lower := strings.ToLower(name)
	for split, words := range splitWords {
		for _, word := range words {
			prefix, ok := strings.CutSuffix(lower, word)
			if ok && (prefix == "" || strings.ContainsAny(prefix[len(prefix)-1:], "-_. ")) {
				return Split(split), prefix
			}
		}
	}
	return -1, ""
}

// only returns the single subdirectory to descend into if a directory contains nothing else, as in
// many unpacked archives, or "" for the directory itself.
func only(root, dir string, entries []dirEntry) (string, error) {
	var dirs []string
	for _, entry := range entries {
		if entry.isDir {
			dirs = append(dirs, entry.name)
		} else if IsImage(entry.name) {
			return "", nil
		}
	}
	if table, err := labelTable(root, dir, entries); err != nil || table != nil || len(dirs) != 1 {
		return "", err
	}
	inside, err := readDir(root, dirs[0])
	if err != nil {
		return "", err
	}
	table, err := labelTable(root, dirs[0], inside)
	if err != nil || table != nil {
		return dirs[0], err
	}
	for _, entry := range inside {
		if !entry.isDir && IsImage(entry.name) {
			return "", nil // the directory is the only class
		}
	}
	return dirs[0], nil
}

// labelled lists the image files of a directory with their classes, from its label table or from
// its subdirectories.
func labelled(root, dir string) (*listing, error) {
	var entries []dirEntry
	for range maxDepth {
		var err error
		if entries, err = readDir(root, dir); err != nil {
			return nil, err
		}
		next, err := only(root, dir, entries)
		if err != nil {
			return nil, err
		}
		if next == "" {
			break
		}
		dir = next
	}
	table, err := labelTable(root, dir, entries)
	if err != nil {
		return nil, err
	}
	if table != nil {
		return table.list(root, dir)
	}
	found := &listing{dir: dir}
	place := filepath.Join(root, filepath.FromSlash(dir))
	owners := map[string]string{}
	for _, entry := range entries {
		if !entry.isDir {
			if IsImage(entry.name) {
				found.skipped = append(found.skipped, entry.name+": is in no class directory")
			}
			continue
		}
		class := canonicalClass(entry.base())
		if other := owners[class]; other != "" {
			return nil, errors.Errorf("datasets: %s: class %[4]s must have one directory, got %[2]s and %[3]s", place, other, entry.base(), class)
		}
		owners[class] = entry.base()
		before := len(found.images)
		if found.images, err = walk(found.images, root, entry.name, class, 0); err != nil {
			return nil, err
		}
		if len(found.images) == before {
			return nil, errors.Errorf("datasets: %s: directory %s must have an image (%s), since each directory is a class",
				place, entry.base(), extensions())
		}
	}
	if len(found.images) == 0 {
		return nil, errors.WithStack(NoClassesError{place})
	}
	slices.SortStableFunc(found.images, func(a, b imageFile) int { return compareClasses(a.class, b.class) })
	return found, nil
}

// extensions lists the extensions of images.
func extensions() string {
	var all []string
	for _, format := range imageFormats {
		all = append(all, format.extensions...)
	}
	return strings.Join(all, " ")
}

// walk appends all image files below a directory, by name.
func walk(images []imageFile, root, dir, class string, depth int) ([]imageFile, error) {
	if depth > maxDepth {
		return nil, errors.Errorf("datasets: %s: directories must be at most %d deep (does a link lead back up?)",
			filepath.Join(root, dir), maxDepth)
	}
	entries, err := readDir(root, dir)
	for _, entry := range entries {
		if err == nil && entry.isDir {
			images, err = walk(images, root, entry.name, class, depth+1)
		} else if IsImage(entry.name) {
			images = append(images, entry.imageFile(class))
		}
	}
	return images, err
}

// canonicalClass returns the name of a class. Integers lose leading zeros, so that the directory
// 00007 and the 7 of a table are one class.
func canonicalClass(name string) string {
	if number, ok := classNumber(name); ok {
		return strconv.FormatInt(number, 10)
	}
	return name
}

func classNumber(name string) (int64, bool) {
	number, err := strconv.ParseInt(name, 10, 64)
	return number, err == nil && number >= 0 && name[0] != '+' && name[0] != '-'
}

// compareClasses orders class names: first integers, by value, then other names.
func compareClasses(a, b string) int {
	x, isNumber := classNumber(a)
	y, alsoNumber := classNumber(b)
	switch {
	case isNumber && alsoNumber:
		return cmp.Compare(x, y)
	case isNumber:
		return -1
	case alsoNumber:
		return 1
	default:
		return strings.Compare(a, b)
	}
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

// checkClasses returns an error if a split has a class that training lacks.
func (t tree) checkClasses() error {
	known := t.splits[Train].classes()
	for split, list := range t.splits {
		if list == nil || Split(split) == Train {
			continue
		}
		for _, class := range list.classes() {
			if !slices.Contains(known, class) {
				return errors.Errorf("datasets: %s: the classes of %s images must be among those of the training images in %[4]s: %[5]s, got %[3]q",
					filepath.Join(t.root, list.dir), Split(split), class, t.splits[Train].dir, abbreviated(known))
			}
		}
	}
	return nil
}

// abbreviated lists at most eight names.
func abbreviated(names []string) string {
	if len(names) > 8 {
		return strings.Join(names[:8], ", ") + ", ... (" + strconv.Itoa(len(names)) + " in all)"
	}
	return strings.Join(names, ", ")
}

func isDir(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}
