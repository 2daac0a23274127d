package datasets

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/pkg/errors"
)

// maxDepth limits the depth of directories, since a link may lead back up.
const maxDepth = 32

// dirEntry is a visible file or directory, with links followed.
type dirEntry struct {
	name           string // relative to the root
	isDir          bool
	size, modified int64
}

// base returns the last element of an entry's name.
func (e dirEntry) base() string { return lastPart(e.name) }

// imageFile is a file of an image directory, or an image in a row of a Parquet file.
type imageFile struct {
	name     string // relative to the directory, with slashes
	class    string // canonical, or ""
	size     int64
	modified int64  // nanoseconds since 1970
	group    string // in the label table, or ""

	shard  *shard // the Parquet file, or nil; the row in it, and the path that the row has
	row    int
	inside string
}

func (e dirEntry) imageFile(class string) imageFile {
	return imageFile{name: e.name, class: class, size: e.size, modified: e.modified}
}

// lastPart returns a name after its last slash.
func lastPart(name string) string { return name[strings.LastIndexByte(name, '/')+1:] }

// join joins two relative names; the first may be "".
func join(dir, name string) string {
	if dir == "" {
		return name
	}
	return dir + "/" + name
}

// systemNames are files and directories that operating systems, network drives and programs put
// next to the user's: thumbnails, trash and caches. They may contain images.
var systemNames = []string{
	"__MACOSX", "__pycache__", "@eaDir", "@Recycle", "@Recently-Snapshot", "#recycle", "#snapshot", "lost+found",
	"$RECYCLE.BIN", "RECYCLER", "System Volume Information", "Thumbs.db", "ehthumbs.db", "desktop.ini",
}

// isHidden reports whether a file with this name is skipped: it is hidden, or one of systemNames.
func isHidden(name string) bool {
	return strings.HasPrefix(name, ".") || slices.ContainsFunc(systemNames, func(system string) bool { return strings.EqualFold(name, system) })
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
		if isHidden(entry.Name()) {
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

func isDir(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

func isRegular(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular()
}

// onlyDir descends through directories whose only visible entry is a directory, as in unpacked
// archives.
func onlyDir(path string) string {
	for range maxDepth {
		entries, err := readDir(path, "")
		if err != nil || len(entries) != 1 || !entries[0].isDir {
			break
		}
		path = filepath.Join(path, entries[0].name)
	}
	return path
}

// nameOf returns a data set's name from its path: the last part, without a file's extension.
func nameOf(path string) string {
	if whole, err := filepath.Abs(path); err == nil {
		path = whole // the path may be "."
	}
	name := filepath.Base(path)
	if !isDir(path) {
		for extension := filepath.Ext(name); extension != "" && extension != name; extension = filepath.Ext(name) {
			name = name[:len(name)-len(extension)]
		}
	}
	return name
}
