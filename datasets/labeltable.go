package datasets

import (
	"bytes"
	"encoding/csv"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/pkg/errors"
)

// The headings of the columns of a label table, in lower case, in order of preference.
var (
	fileHeadings  = []string{"filename", "file", "path", "image", "image_path", "img_path"}
	classHeadings = []string{"classid", "class", "label", "category"}
)

// table is a CSV file with the classes of images.
type table struct {
	entry       dirEntry
	rows        [][]string // without the header
	file, class int        // columns
}

// labelTable returns the CSV file of a directory with a column of file names and one of classes, or
// nil if there is none. Other CSV files are ignored.
func labelTable(root, dir string, entries []dirEntry) (*table, error) {
	var found *table
	for _, entry := range entries {
		if entry.isDir || !strings.EqualFold(filepath.Ext(entry.name), ".csv") {
			continue
		}
		candidate, err := readTable(root, entry)
		if err != nil {
			return nil, err
		}
		if candidate == nil {
			continue
		}
		if found != nil {
			return nil, errors.Errorf("datasets: %s: must have one table of classes, got %s and %s",
				filepath.Join(root, dir), found.entry.base(), entry.base())
		}
		found = candidate
	}
	return found, nil
}

// maxTable is the largest size of a CSV file.
const maxTable = 1 << 28

// readTable reads a CSV file, separated by commas, semicolons or tabs. It returns nil if the header
// is not that of a label table.
func readTable(root string, entry dirEntry) (*table, error) {
	path := filepath.Join(root, filepath.FromSlash(entry.name))
	if entry.size > maxTable {
		return nil, errors.Errorf("datasets: %s: must have at most %[3]d bytes, got %[2]d", path, entry.size, maxTable)
	}
	content, err := os.ReadFile(path)
	if err != nil {
		return nil, errors.Wrap(err, "datasets")
	}
	content = bytes.TrimPrefix(content, []byte("\ufeff"))
	heading, _, _ := bytes.Cut(content, []byte("\n"))
	reader := csv.NewReader(bytes.NewReader(content))
	for _, comma := range ";\t" {
		if strings.ContainsRune(string(heading), comma) {
			reader.Comma = comma
			break
		}
	}
	names, err := reader.Read()
	if err != nil {
		return nil, nil // not a table with a header
	}
	for i := range names {
		names[i] = strings.ToLower(strings.TrimSpace(names[i]))
	}
	found := &table{entry: entry, file: column(names, fileHeadings), class: column(names, classHeadings)}
	if found.file < 0 || found.class < 0 {
		return nil, nil
	}
	if found.rows, err = reader.ReadAll(); err != nil {
		return nil, errors.Wrapf(err, "datasets: %s", path)
	}
	return found, nil
}

// column returns the column with the first of the wanted headings, or -1.
func column(names, wanted []string) int {
	for _, heading := range wanted {
		if at := slices.Index(names, heading); at >= 0 {
			return at
		}
	}
	return -1
}

// list returns the images in the table, in its order. A file name is relative to the table's
// directory, or the base name of a single file below it.
func (t *table) list(root, dir string) (*listing, error) {
	there, err := walk(nil, root, dir, "", 0)
	if err != nil {
		return nil, err
	}
	byName, often := map[string]imageFile{}, map[string]int{}
	for _, p := range there {
		base := p.name[strings.LastIndexByte(p.name, '/')+1:]
		often[base]++
		byName[base] = p
	}
	for _, p := range there {
		relative := strings.TrimPrefix(strings.TrimPrefix(p.name, dir), "/")
		byName[relative], often[relative] = p, 1
	}
	found := &listing{dir: dir, tables: []imageFile{t.entry.imageFile("")}}
	lines := map[string]int{}
	for i, row := range t.rows {
		line := i + 2
		name := strings.TrimSpace(filepath.ToSlash(row[t.file]))
		name = strings.TrimPrefix(name, "./")
		class := canonicalClass(strings.TrimSpace(row[t.class]))
		p, ok := byName[name]
		switch {
		case class == "":
			return nil, errors.Errorf("datasets: %s: record %d: %s must have a class", filepath.Join(root, t.entry.name), line, name)
		case !ok:
			found.skipped = append(found.skipped, join(dir, name)+": listed in "+t.entry.base()+" but missing")
			continue
		case often[name] > 1:
			return nil, errors.Errorf("datasets: %s: record %d: %[4]s must be one file, got %[3]d: use its path",
				filepath.Join(root, t.entry.name), line, often[name], name)
		case lines[p.name] > 0:
			return nil, errors.Errorf("datasets: %s: record %d: %s is already in record %d",
				filepath.Join(root, t.entry.name), line, name, lines[p.name])
		}
		lines[p.name] = line
		p.class = class
		found.images = append(found.images, p)
	}
	if len(found.images) == 0 {
		return nil, errors.Errorf("datasets: %s: must list existing images, got %d missing ones; the first is %s",
			filepath.Join(root, t.entry.name), len(t.rows), strings.Join(found.skipped[:min(1, len(found.skipped))], ""))
	}
	return found, nil
}
