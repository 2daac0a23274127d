package datasets

import (
	"bytes"
	"cmp"
	"encoding/csv"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/pkg/errors"
	"golang.org/x/text/encoding/unicode"
)

// table is a CSV or JSON file with the classes of images.
type table struct {
	entry    dirEntry
	headings []string // without surrounding space
	rows     [][]string
	first    int   // number of the record in the first row
	unnamed  bool  // a JSON file that does not name its columns, and may be anything
	problem  error // why a file that names no columns of files and classes could not be read
	// Columns; class, split and group may be -1.
	file, class, split, group int
	// classes are the columns of a table with one column for each class, which has a 1 for each
	// image of the class.
	classes []int
	// encoding is what to do about bytes that are not UTF-8, as the end of an error; "" if there
	// are none.
	encoding string
}

func isTable(entry dirEntry) bool {
	return !entry.isDir && (strings.EqualFold(filepath.Ext(entry.name), ".csv") || isJSON(entry.name) && entry.size <= maxTable)
}

// labelTables returns the label tables of a directory: CSV and JSON files with a column of file
// names and a column of classes. These are recognised by their headings or, if guess is set or the
// directory has no class directories, by their content. Among several tables, those named like
// splits are returned. Other files that name columns are noted in s.looked.
func (s *scanner) labelTables(dir string, entries []dirEntry, guess bool) ([]*table, error) {
	var found []*table
	for _, entry := range entries {
		if !isTable(entry) {
			continue
		}
		t, err := s.readTable(entry)
		if err != nil {
			return nil, err
		}
		known := t.isNamed()
		if !known && len(t.rows) > 0 {
			index, err := s.index(dir)
			if err != nil {
				return nil, err
			}
			known = (guess || index.flat()) && t.guess(index)
			if known && !isJSON(entry.name) && index.find(t.headings[t.file], false).count > 0 {
				return nil, errors.Errorf("datasets: %s: record 1 must name the columns, such as %s,%s, got the image %s",
					s.path(entry.name), fileHeadings[1], classHeadings[2], t.headings[t.file])
			}
		}
		switch {
		case known:
			found = append(found, t)
		case t.unnamed:
			continue // left out, as other files that are not images
		default:
			s.looked[entry.name] = cmp.Or(abbreviated(t.headings), "none")
		}
		s.tables[entry.name] = true
	}
	if len(found) < 2 {
		return found, nil
	}
	var names []string
	var owners [3]*table
	for _, t := range found {
		names = append(names, t.entry.base())
		split := t.splitByName()
		switch {
		case split < 0:
		case owners[split] != nil:
			return nil, errors.Errorf("datasets: %s: must have one table of the %[4]s split, got %[2]s and %[3]s",
				s.path(dir), owners[split].entry.base(), t.entry.base(), split)
		default:
			owners[split] = t
		}
	}
	if owners[Train] == nil {
		return nil, errors.Errorf("datasets: %s: must have one table of classes, or one called train.csv, got %s", s.path(dir), strings.Join(names, " and "))
	}
	for _, t := range found {
		if t.splitByName() < 0 {
			s.remark(t.entry.name, "not read, since %s is", owners[Train].entry.base())
		}
	}
	return slices.DeleteFunc(found, func(t *table) bool { return t.splitByName() < 0 }), nil
}

// tableAt reads the table with a name in the root, and lists the images that it may have.
func (s *scanner) tableAt(name string) (*table, *imageIndex, error) {
	entries, err := s.readDir("")
	if err != nil {
		return nil, nil, err
	}
	at := slices.IndexFunc(entries, func(e dirEntry) bool { return e.name == name })
	if at < 0 { // removed since it was found
		return nil, nil, errors.Errorf("datasets: %s: must exist, got no such file", s.path(name))
	}
	t, err := s.readTable(entries[at])
	if err != nil {
		return nil, nil, err
	}
	for _, entry := range entries {
		s.tables[entry.name] = isTable(entry) // other tables are left out on purpose
	}
	if t.problem != nil {
		return nil, nil, errors.WithMessagef(t.problem, "datasets: %s", s.path(name))
	}
	index, err := s.index("")
	return t, index, err
}

// table lists the images in one label table.
func (s *scanner) table(name string) ([3]*listing, error) {
	t, index, err := s.tableAt(name)
	if err != nil {
		return [3]*listing{}, err
	}
	if !t.isNamed() && !t.guess(index) {
		return [3]*listing{}, errors.WithStack(&NoClassesError{s.path(name),
			"must have a column of files and one of classes, got " + t.described() + s.options.labelAdvice()})
	}
	return s.listed("", []*table{t})
}

// described describes what a table has, for errors.
func (t *table) described() string {
	if !t.unnamed {
		return "the columns " + abbreviated(t.headings)
	}
	var names []string
	for _, row := range t.rows {
		names = append(names, row[0])
	}
	return "an object with the members " + abbreviated(names)
}

// labelAdvice returns what to do if the column with the labels is not recognised.
func (o Options) labelAdvice() string {
	if o.Label != "" {
		return fmt.Sprintf("; the label, %q, must be one of them", o.Label)
	}
	return "; state the column with the classes as label"
}

// tableDescription describes label tables among what can be opened, for errors.
const tableDescription = "a CSV or JSON file with the names and classes of images next to it or below it (.csv, .json, .jsonl)"

// isTableFile reports whether a file is a CSV file with a column of file names, and no pixels, or a
// JSON file.
func (o Options) isTableFile(path string) bool {
	if isJSON(path) && !isDir(path) {
		return true
	}
	if !strings.EqualFold(filepath.Ext(path), ".csv") || isDir(path) {
		return false
	}
	file, err := openFile(path)
	if err != nil {
		return false
	}
	defer file.Close()
	_, err = newCSVReader(path, file, o)
	return errors.As(err, new(fileTableError))
}

// splitByName returns the split whose name the table's file has, or -1.
func (t *table) splitByName() Split {
	name := t.entry.base()
	stem := strings.ToLower(strings.TrimSuffix(name, filepath.Ext(name)))
	return splitNamed(stem[strings.LastIndexAny(stem, "-_")+1:])
}

// maxTable is the largest size of a label table.
const maxTable = 1 << 28

// maxGuessed is the largest number of columns of a table whose columns may be guessed.
const maxGuessed = 1000

// readTable reads a label table. It has no rows if the headings do not name its columns and there
// are too many to guess.
func (s *scanner) readTable(entry dirEntry) (*table, error) {
	if t := s.parsed[entry.name]; t != nil {
		return t, nil
	}
	path := s.path(entry.name)
	content, err := readFile(path, maxTable)
	if err != nil {
		return nil, errors.Wrap(err, "datasets")
	}
	content = decodedText(content)
	t := &table{entry: entry, file: -1, class: -1, split: -1, group: -1}
	if isJSON(entry.name) {
		err = s.readJSON(t, content)
	} else {
		err = s.readCSV(t, content)
	}
	if err != nil && t.isNamed() {
		return nil, errors.WithMessagef(err, "datasets: %s", path)
	}
	t.problem = err
	s.parsed[entry.name] = t
	return t, nil
}

// readCSV reads a table whose columns are separated by commas, semicolons or tabs.
func (s *scanner) readCSV(t *table, content []byte) error {
	heading, _, _ := bytes.Cut(content, []byte("\n"))
	reader := csv.NewReader(bytes.NewReader(content))
	for _, comma := range ";\t" {
		if strings.ContainsRune(string(heading), comma) {
			reader.Comma = comma
			break
		}
	}
	if !utf8.Valid(content) {
		t.encoding = "; the table is not in UTF-8: save it again, or convert it, such as from Western European Windows by iconv -f WINDOWS-1252 -t UTF-8"
	}
	headings, err := reader.Read()
	if err != nil {
		return errors.WithStack(err)
	}
	s.nameColumns(t, headings)
	if t.isNamed() || len(headings) <= maxGuessed {
		t.rows, err = reader.ReadAll()
	}
	t.first = 2
	return errors.WithStack(err)
}

func (s *scanner) readJSON(t *table, content []byte) error {
	headings, rows, named, err := readJSONTable(content)
	t.unnamed = !named || len(headings) == 0
	s.nameColumns(t, headings)
	if t.isNamed() || 0 < len(headings) && len(headings) <= maxGuessed {
		t.rows = rows
	}
	t.first = 1
	return err
}

// nameColumns sets the headings, and the columns that they name.
func (s *scanner) nameColumns(t *table, headings []string) {
	t.headings = headings
	names := make([]string, len(headings))
	for i, heading := range headings {
		headings[i] = strings.TrimSpace(heading)
		names[i] = strings.ToLower(headings[i])
	}
	t.class, t.split = column(names, classHeadings), column(names, splitHeadings)
	if !t.unnamed {
		t.file = column(names, fileHeadings)
	}
	group := s.options.GroupColumn()
	t.group = slices.IndexFunc(headings, func(heading string) bool { return group != "" && strings.EqualFold(heading, group) })
	if at := slices.IndexFunc(headings, s.options.isLabel); at >= 0 {
		t.class = at
	}
}

// isNamed reports whether the headings name the columns of files and classes.
func (t *table) isNamed() bool { return t.file >= 0 && t.class >= 0 }

// decodedText returns a text without a byte order mark, in UTF-8 if it is in UTF-16, as
// spreadsheets save "Unicode text".
func decodedText(content []byte) []byte {
	if bytes.HasPrefix(content, []byte("\xff\xfe")) || bytes.HasPrefix(content, []byte("\xfe\xff")) {
		decoder := unicode.UTF16(unicode.LittleEndian, unicode.UseBOM).NewDecoder()
		if text, err := decoder.Bytes(content); err == nil {
			return text
		}
	}
	return bytes.TrimPrefix(content, []byte("\ufeff"))
}

// guess determines the columns that the headings do not name, and reports whether they are clear.
// The classes are in the only column besides the files', or else each other column stands for a
// class, with 1 for the images of the class and 0 for others. Columns without a heading do not
// count.
func (t *table) guess(index *imageIndex) bool {
	if !t.guessFile(index) {
		return false
	}
	if t.class >= 0 {
		return t.class != t.file
	}
	var others []int
	for column, heading := range t.headings {
		if column != t.file && column != t.split && column != t.group && heading != "" {
			others = append(others, column)
		}
	}
	switch len(others) {
	case 0:
		return false
	case 1:
		t.class = others[0]
		return true
	}
	for _, row := range t.rows {
		for _, column := range others {
			if value, err := strconv.ParseFloat(strings.TrimSpace(row[column]), 64); err != nil || value != 0 && value != 1 {
				return false
			}
		}
	}
	t.classes = others
	return true
}

// guessFile determines the column of files, if the headings do not name it, and reports whether it
// is clear: it is the only column that has distinct names of images.
func (t *table) guessFile(index *imageIndex) bool {
	if t.file >= 0 {
		return true
	}
	var candidates []int
	for column, heading := range t.headings {
		if heading != "" && column != t.group && t.namesImages(column, index) {
			candidates = append(candidates, column)
		}
	}
	if len(candidates) != 1 {
		return false
	}
	t.file = candidates[0]
	return true
}

// unread returns the headings of the columns that are not used.
func (t *table) unread() (headings []string) {
	used := append([]int{t.file, t.class, t.split, t.group}, t.classes...)
	for column, heading := range t.headings {
		if heading != "" && !slices.Contains(used, column) {
			headings = append(headings, heading)
		}
	}
	return headings
}

// namesImages reports whether all fields of a column differ, and the first ten are names of
// images.
func (t *table) namesImages(column int, index *imageIndex) bool {
	seen := map[string]bool{}
	for i, row := range t.rows {
		name := row[column]
		if seen[name] || i < 10 && index.find(name, false).count == 0 && index.find(name, true).count == 0 {
			return false
		}
		seen[name] = true
	}
	return len(t.rows) > 0
}

// classOf returns the class of a row, or "" if it has none.
func (t *table) classOf(row []string) (string, error) {
	if t.classes == nil {
		if text := row[t.class]; isJSON(t.entry.name) && strings.ContainsAny(text[:min(1, len(text))], "[{") {
			return "", errors.Errorf("must have one class, text or a number, got %.40s", text)
		}
		class := canonicalClass(row[t.class])
		if class == "" {
			return "", nil
		}
		return class, checkClass(class)
	}
	var names []string
	for _, column := range t.classes {
		if value, _ := strconv.ParseFloat(strings.TrimSpace(row[column]), 64); value == 1 {
			names = append(names, canonicalClass(t.headings[column]))
		}
	}
	switch len(names) {
	case 0:
		return "", nil
	case 1:
		return names[0], checkClass(names[0])
	}
	return "", errors.Errorf("must have a 1 for a single class, got %s", abbreviated(names))
}

// groupOf returns the group of a row in the column that has the groups, "" if groups are not
// requested.
func (t *table) groupOf(row []string, column string) (string, error) {
	if column == "" {
		return "", nil
	}
	if t.group < 0 {
		return "", errors.Errorf("must have the column %s with the groups of images, got the columns %s", column, abbreviated(t.headings))
	}
	group := strings.TrimSpace(row[t.group])
	if group == "" {
		return "", errors.Errorf("%s must not be empty, since it is the group of the image", column)
	}
	return group, nil
}
