package datasets

import (
	"cmp"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/pkg/errors"
)

func isParquetName(name string) bool {
	return strings.EqualFold(filepath.Ext(name), ".parquet") && !isHidden(name)
}

// maxConfigurations limits the entries of a directory whose directories are searched for Parquet
// files, since classes are directories, too.
const maxConfigurations = 100

// parquetDirs returns the directories directly below dir that have Parquet files, in them or in
// directories for the splits in them.
func parquetDirs(root, dir string) (found []string) {
	entries, err := os.ReadDir(filepath.Join(root, filepath.FromSlash(dir)))
	if err != nil || len(entries) > maxConfigurations {
		return nil
	}
	const depth = 2 // a configuration, and a split in it
	for _, entry := range entries {
		if name := join(dir, entry.Name()); isVisibleDir(root, name, entry) && holdsParquet(root, name, depth-1) {
			found = append(found, name)
		}
	}
	return found
}

// holdsParquet reports whether a directory has a Parquet file, in it or in directories below it.
func holdsParquet(root, dir string, depth int) bool {
	entries, err := os.ReadDir(filepath.Join(root, filepath.FromSlash(dir)))
	if err != nil {
		return false
	}
	if slices.ContainsFunc(entries, func(entry os.DirEntry) bool { return isParquetName(entry.Name()) }) {
		return true
	}
	return depth > 0 && len(entries) <= maxConfigurations && slices.ContainsFunc(entries, func(entry os.DirEntry) bool {
		name := join(dir, entry.Name())
		return isVisibleDir(root, name, entry) && holdsParquet(root, name, depth-1)
	})
}

func isVisibleDir(root, name string, entry os.DirEntry) bool {
	isLink := entry.Type()&os.ModeSymlink != 0
	return !isHidden(entry.Name()) && (entry.IsDir() || isLink && isDir(filepath.Join(root, filepath.FromSlash(name))))
}

// parquetFiles are the Parquet files of a data set.
type parquetFiles struct {
	splits [3][]dirEntry // by Split
	others []string      // files that belong to no split
}

// findParquet finds the Parquet files of a data set: a file, or those in a directory, in
// directories for the splits in it, or in the only directory below that has any.
func findParquet(root string) (found parquetFiles, err error) {
	if info, err := os.Stat(root); err == nil && !info.IsDir() {
		if isParquetName(root) {
			found.splits[Train] = []dirEntry{{"", false, info.Size(), info.ModTime().UnixNano()}}
		}
		return found, nil
	}
	at := ""
	for {
		if holdsParquet(root, at, 0) {
			return found, found.add(root, at, -1)
		}
		dirs := parquetDirs(root, at)
		areSplits := slices.ContainsFunc(dirs, func(dir string) bool { return splitNamed(lastPart(dir)) >= 0 && holdsParquet(root, dir, 0) })
		switch {
		case areSplits:
			for _, dir := range dirs {
				split := splitNamed(lastPart(dir))
				if split < 0 {
					found.others = append(found.others, dir)
				} else if err := found.add(root, dir, split); err != nil {
					return found, err
				}
			}
			return found, nil
		case len(dirs) > 1:
			return found, errors.Errorf("datasets: %s: must have one directory with Parquet files, got %s: open one of them", root, abbreviated(dirs))
		case len(dirs) == 0:
			return found, nil
		}
		at = dirs[0]
	}
}

// add adds the Parquet files of a directory to a split, or, if split is negative, to those that
// their names have. If none has a split's name, all are training images.
func (f *parquetFiles) add(root, dir string, split Split) error {
	entries, err := readDir(root, dir)
	if err != nil {
		return err
	}
	entries = slices.DeleteFunc(entries, func(e dirEntry) bool { return e.isDir || !isParquetName(e.base()) })
	named := slices.ContainsFunc(entries, func(e dirEntry) bool { return splitOfShard(e.base()) >= 0 })
	for _, e := range entries {
		of := split
		if split < 0 {
			of = Train
			if named {
				of = splitOfShard(e.base())
			}
		}
		if of < 0 {
			f.others = append(f.others, e.name)
		} else {
			f.splits[of] = append(f.splits[of], e)
		}
	}
	return nil
}

// shardNumber is the end of a file's name that numbers the files of a split, as the Hub writes it.
var shardNumber = regexp.MustCompile(`(-\d+-of-\d+(-[0-9a-f]+)?|[-_.]\d+)$`)

// splitOfShard returns the split of a file such as train-00000-of-00001.parquet, or -1.
func splitOfShard(name string) Split {
	stem := strings.TrimSuffix(name, filepath.Ext(name))
	split, _ := splitOf(shardNumber.ReplaceAllString(stem, ""))
	return split
}

// all returns all files, by split.
func (f parquetFiles) all() []dirEntry { return slices.Concat(f.splits[:]...) }

// parquetDescription describes the format for errors.
const parquetDescription = "image files in a Parquet file, or in a directory of such files, as the Hugging Face Hub stores them (.parquet)"

// isParquet reports whether a path is a Parquet file, or a directory of them. In a directory of
// images, a Parquet file may also be a table.
func isParquet(path string) bool {
	found, err := findParquet(path)
	files := found.all()
	if err != nil || len(files) == 0 {
		return err != nil // opening it returns the error
	}
	if files[0].name == "" {
		return true
	}
	s := &shard{path: filepath.Join(path, filepath.FromSlash(files[0].name))}
	opened, _, columns, err := s.open()
	if err == nil {
		opened.Close()
	}
	return err == nil || columns.all == nil || !hasImages(path, maxDepth)
}

// hasImages reports whether a directory has an image file, in it or below it.
func hasImages(path string, depth int) bool {
	entries, err := os.ReadDir(path)
	if err != nil || depth == 0 {
		return false
	}
	return slices.ContainsFunc(entries, func(entry os.DirEntry) bool {
		return IsImage(entry.Name()) || entry.IsDir() && hasImages(filepath.Join(path, entry.Name()), depth-1)
	})
}

const imagesNextToParquet = "image files next to the Parquet files are not read"

// scanParquet lists the images in Parquet files.
func (o Options) scanParquet(root string) (tree, error) {
	files, err := findParquet(root)
	if err != nil {
		return tree{}, err
	}
	s := newScanner(o, root)
	if len(files.others) > 0 {
		s.remark("", "left out, since they are not named after splits: %s", abbreviated(files.others))
	}
	if hasImages(root, maxDepth) {
		s.remark("", imagesNextToParquet)
	}
	found := tree{root: root, lacks: "no labels"}
	var columns parquetColumns
	declared := map[string]bool{}
	for split, entries := range files.splits {
		if len(entries) == 0 {
			continue
		}
		list := &listing{}
		for _, e := range entries {
			if columns, err = s.listShard(list, e, o); err != nil {
				return found, err
			}
			for _, name := range columns.names {
				declared[canonicalClass(name)] = true
			}
		}
		all := list.images
		list.images = slices.DeleteFunc(slices.Clone(all), func(p imageFile) bool { return p.class == "" })
		if len(list.images) == 0 {
			for _, e := range entries {
				found.flat[split] = append(found.flat[split], e.name)
			}
			continue
		}
		if without := len(all) - len(list.images); without > 0 {
			first := all[slices.IndexFunc(all, func(p imageFile) bool { return p.class == "" })]
			s.remark("", "%d of %d images of the %s split have no label and are left out, such as %s", without, len(all), Split(split), first.shard.place(first.row))
		}
		found.splits[split] = list
	}
	if found.splits == [3]*listing{} || files.splits[Train] != nil && found.splits[Train] == nil {
		problem := "must have a label for each image, got none or only -1"
		if columns.label == nil {
			problem = "must have a column of labels (" + strings.Join(labelHeadings[:3], ", ") + " ...), got the columns " + abbreviated(columns.all) + o.labelAdvice()
		}
		return found, errors.WithStack(&NoClassesError{root, problem})
	}
	if columns.label != nil {
		found.label = columns.label.Name
	}
	if err := s.checkClasses(found.splits); err != nil {
		return found, err
	}
	nameRows(s, found.splits)
	s.remarkDeclared(declared, found)
	found.remarks = s.remarks
	return found, nil
}

// listShard adds the images of a file to a list. They are named by their places.
func (s *scanner) listShard(list *listing, e dirEntry, o Options) (parquetColumns, error) {
	file := &shard{path: s.path(e.name), name: cmp.Or(e.name, filepath.Base(s.root)), options: o}
	entry := e.imageFile("")
	entry.name = file.name
	list.tables = append(list.tables, entry)
	columns, err := file.eachRow(func(row int, r shardRow) error {
		list.images = append(list.images, imageFile{class: r.class, group: r.group, shard: file, row: row, inside: r.path})
		return nil
	})
	if err != nil {
		return columns, err
	}
	if column := o.GroupColumn(); column != "" && columns.group == nil {
		return columns, invalid("Group", "%s: must have the column %s with the groups of images, got the columns %s", file.path, column, abbreviated(columns.all))
	}
	if len(columns.unread) > 0 {
		s.remark("", "columns that are not read: %s", abbreviated(columns.unread))
	}
	return columns, nil
}

// nameRows names images by the paths that their rows have, or else, if some have none or the same,
// by file and row.
func nameRows(s *scanner, splits [3]*listing) {
	seen := map[string]bool{}
	distinct, first := true, ""
	for _, list := range present(splits) {
		for _, p := range list.images {
			if distinct = distinct && p.inside != "" && !seen[p.inside]; seen[p.inside] && first == "" {
				first = p.inside
			}
			seen[p.inside] = true
		}
	}
	if first != "" {
		s.remark("", "images are named by file and row, since some have the same path, such as %s", first)
	}
	for _, list := range present(splits) {
		for i, p := range list.images {
			if list.images[i].name = p.inside; !distinct {
				list.images[i].name = p.shard.place(p.row)
			}
		}
	}
}

// remarkDeclared remarks on classes in the files' metadata that no training image has.
func (s *scanner) remarkDeclared(declared map[string]bool, t tree) {
	var without []string
	classes := t.classes()
	for name := range declared {
		if !slices.Contains(classes, name) {
			without = append(without, name)
		}
	}
	if slices.SortFunc(without, compareClasses); len(without) > 0 {
		s.remark("", "no training image has the class %s", abbreviated(without))
	}
}

// listRows returns all images in a Parquet file or a directory of them, named by file and row.
func listRows(path string, options Options) (images []encodedImage, err error) {
	files, err := findParquet(path)
	if err != nil {
		return nil, err
	}
	if hasImages(path, maxDepth) {
		options.remark("%s: %s", nameOf(path), imagesNextToParquet)
	}
	for _, e := range files.all() {
		file := &shard{path: filepath.Join(path, filepath.FromSlash(e.name)), options: options}
		file.name = file.path
		columns, err := file.eachRow(func(row int, r shardRow) error {
			images = append(images, encodedImage{name: file.place(row), shard: file, row: row, inside: r.path, id: r.id})
			return nil
		})
		if err != nil {
			return nil, err
		}
		if columns.id != nil {
			file.idName = columns.id.Name
		}
	}
	if len(images) == 0 {
		return nil, errors.Errorf("datasets: %s: must have at least 1 row, got none", path)
	}
	return images, nil
}
