package datasets

import (
	"fmt"
	"slices"
	"strings"

	"github.com/pkg/errors"
)

// tableRow is a row of a label table, with its image.
type tableRow struct {
	record int    // number in the file; the header of a CSV file is 1
	name   string // as in the table
	class  string
	split  Split
	group  string
	match  match
}

// listed lists the images in the label tables of a directory, in their order, by split. A single
// table has a column of splits; if there are several tables, their file names are the splits.
func (s *scanner) listed(dir string, tables []*table) (lists [3]*listing, err error) {
	index, err := s.index(dir)
	if err != nil {
		return lists, err
	}
	named := map[string]bool{}
	var names []string
	for _, t := range tables {
		rows, err := s.rowsOf(t, index)
		if err != nil {
			return lists, err
		}
		if len(tables) > 1 {
			for i := range rows {
				rows[i].split = t.splitByName()
			}
		} else if err := s.splitByColumn(t, rows); err != nil {
			return lists, err
		}
		if err := s.addRows(&lists, dir, t, rows, named); err != nil {
			return lists, err
		}
		if unread := t.unread(); len(unread) > 0 {
			s.remark(t.entry.name, "columns that are not read: %s", abbreviated(unread))
		}
		names = append(names, t.entry.base())
		if t.class >= 0 {
			s.label = t.headings[t.class]
		}
	}
	if lists[Train] == nil {
		return lists, errors.Errorf("datasets: %s: must have rows whose %s is train", s.path(tables[0].entry.name), tables[0].headings[tables[0].split])
	}
	s.remarkUnnamed(index, named, strings.Join(names, " and "))
	return lists, nil
}

// rowsOf returns a table's rows with their images, classes and groups.
func (s *scanner) rowsOf(t *table, index *imageIndex) ([]tableRow, error) {
	rows := s.match(t, index)
	missingClasses, missingClass := 0, ""
	unlabelled, first := 0, ""
	for i, fields := range t.rows {
		row := &rows[i]
		var err error
		if row.class, err = t.classOf(fields); err != nil {
			return nil, errors.Errorf("datasets: %s: record %d: %s %v%s", s.path(t.entry.name), row.record, strings.ToValidUTF8(row.name, "?"), err, t.encoding)
		}
		if row.group, err = t.groupOf(fields, s.options.GroupColumn()); err != nil {
			return nil, invalid("Group", "%s: record %d: %v", s.path(t.entry.name), row.record, err)
		}
		switch {
		case row.class == "":
			if unlabelled++; unlabelled == 1 {
				first = row.name
			}
		case isMissingWord(row.class) || row.class == "-1":
			missingClasses++
			missingClass = row.class
		}
	}
	switch {
	case unlabelled == len(rows) && unlabelled > 0:
		return nil, errors.Errorf("datasets: %s: must have records with a class, got none in %d%s", s.path(t.entry.name), unlabelled, t.encoding)
	case unlabelled > 0:
		s.remark(t.entry.name, "%d of %d records have no class, and their images are left out, such as %s", unlabelled, len(rows), first)
	}
	if missingClasses > 0 {
		s.remark(t.entry.name, "%d of %d records have the class %q: does it stand for a missing value? "+
			"Records with an empty class are left out, as is a class by without-classes", missingClasses, len(rows), missingClass)
	}
	return rows, nil
}

// match finds the images of a table's rows. A file name is relative to the table's directory, or
// the last part of the path of a single file below it. If no image is found, the last parts of the
// names are tried.
func (s *scanner) match(t *table, index *imageIndex) []tableRow {
	rows, found := make([]tableRow, len(t.rows)), 0
	for i, fields := range t.rows {
		row := &rows[i]
		row.record, row.name = i+t.first, strings.TrimSpace(fields[t.file])
		if row.match = index.find(row.name, false); row.match.count > 0 {
			found++
		}
	}
	if found == 0 {
		s.findByLastPart(t, rows, index)
	}
	inexact, example := 0, tableRow{}
	for _, row := range rows {
		if row.match.count == 1 && !row.match.asIs {
			if inexact++; inexact == 1 {
				example = row
			}
		}
	}
	if inexact > 0 {
		s.remark(t.entry.name, "%d of %d files are found without regard to their extension, such as %s for %s",
			inexact, len(rows), example.match.image.name, example.name)
	}
	return rows
}

// ambiguous returns the error for a row whose name several images have.
func (s *scanner) ambiguous(t *table, row tableRow) error {
	return errors.Errorf("datasets: %s: record %d: %[4]s must be one file, got %[3]d: use its path", s.path(t.entry.name), row.record, row.match.count, row.name)
}

// findByLastPart finds the images of rows by the last parts of their names, for tables with paths
// of another machine.
func (s *scanner) findByLastPart(t *table, rows []tableRow, index *imageIndex) {
	example := -1
	for i := range rows {
		rows[i].match = index.find(rows[i].name, true)
		if rows[i].match.count == 1 && example < 0 {
			example = i
		}
	}
	if example >= 0 {
		s.remark(t.entry.name, "files are found by the last part of their path, such as %s for %s", rows[example].match.image.name, rows[example].name)
	}
}

// splitByColumn sets the splits of rows from the table's column of splits, if it has one.
func (s *scanner) splitByColumn(t *table, rows []tableRow) error {
	if t.split < 0 {
		return nil
	}
	var others []string
	other, record := "", 0
	for i, fields := range t.rows {
		value := strings.TrimSpace(fields[t.split])
		if rows[i].split = splitNamed(value); rows[i].split >= 0 {
			continue
		}
		if others = append(others, value); len(others) == 1 {
			other, record = value, rows[i].record
		}
	}
	heading := t.headings[t.split]
	switch {
	case len(others) == 0:
		return nil
	case len(others) < len(rows):
		return errors.Errorf("datasets: %s: record %d: %s must be train, val or test, got %q", s.path(t.entry.name), record, heading, other)
	}
	slices.SortFunc(others, compareClasses)
	s.remark(t.entry.name, "the column %s is not used, since its values are not train, val or test: %s", heading, abbreviated(slices.Compact(others)))
	for i := range rows {
		rows[i].split = Train
	}
	return nil
}

// addRows adds the images of a table to the lists of their splits, and their names to named.
func (s *scanner) addRows(lists *[3]*listing, dir string, t *table, rows []tableRow, named map[string]bool) error {
	records := map[string]tableRow{}
	table := s.path(t.entry.name)
	count := 0
	disputed, err := s.disputed(t, rows)
	if err != nil {
		return err
	}
	repeated, again := 0, tableRow{}
	for _, row := range rows {
		if row.class == "" || disputed[row.match.image.name] {
			named[row.match.image.name] = true
			continue
		}
		list := lists[row.split]
		if list == nil {
			list = &listing{dir: dir}
			lists[row.split] = list
		}
		if len(list.tables) == 0 || list.tables[len(list.tables)-1].name != t.entry.name {
			list.tables = append(list.tables, t.entry.imageFile(""))
		}
		image := row.match.image
		switch {
		case row.match.count == 0:
			list.skipped = append(list.skipped, join(dir, comparedName(row.name))+": listed in "+t.entry.base()+" but missing")
			continue
		case row.match.count > 1:
			return s.ambiguous(t, row)
		}
		if before, found := records[image.name]; found {
			if before.split != row.split || before.group != row.group {
				return errors.Errorf("datasets: %s: record %d: %s is also in record %d, with another split or group: remove one of them",
					table, row.record, row.name, before.record)
			}
			if repeated++; repeated == 1 {
				again = row
			}
			continue
		}
		records[image.name] = row
		named[image.name] = true
		image.class, image.group = row.class, row.group
		list.images = append(list.images, image)
		count++
	}
	if repeated > 0 {
		s.remark(t.entry.name, "%d of %d records repeat others, such as record %d, %s; each image is read once", repeated, len(rows), again.record, again.name)
	}
	if count == 0 {
		first := ""
		for _, list := range lists {
			if list != nil && len(list.skipped) > 0 && first == "" {
				first = "; the first is " + list.skipped[0]
			}
		}
		return errors.Errorf("datasets: %s: must list existing images, got %d missing ones%s%s", table, len(rows), strings.ToValidUTF8(first, "?"), t.encoding)
	}
	return nil
}

// disputed returns the names of the images that a table lists with several classes. They are an
// error unless the options drop images with two labels, which is a remark.
func (s *scanner) disputed(t *table, rows []tableRow) (map[string]bool, error) {
	disputed, records := map[string]bool{}, map[string]tableRow{}
	var names []string
	example := ""
	for _, row := range rows {
		if row.class == "" || row.match.count != 1 {
			continue
		}
		name := row.match.image.name
		before, found := records[name]
		switch {
		case !found:
			records[name] = row
		case before.class != row.class && !disputed[name]:
			if disputed[name] = true; example == "" {
				example = fmt.Sprintf("%s has the class %s in record %d, and %s in record %d", row.name, before.class, before.record, row.class, row.record)
			}
			names = append(names, name)
		}
	}
	switch {
	case len(names) == 0:
		return nil, nil
	case s.options.Duplicates != DropDuplicates:
		return nil, errors.Errorf("datasets: %s: an image must have one class, got several for %d of them; %s: remove the wrong records, "+
			"or set duplicates to %s, which leaves such images out", s.path(t.entry.name), len(names), example, DropDuplicates)
	}
	s.remark(t.entry.name, "left out, since they have several classes: %d of %d images; %s", len(names), len(records), example)
	return disputed, nil
}

// remarkUnnamed counts the images that no table names.
func (s *scanner) remarkUnnamed(index *imageIndex, named map[string]bool, tables string) {
	left, first := 0, ""
	for _, image := range index.images {
		if !named[image.name] {
			if left++; left == 1 {
				first = image.name
			}
		}
	}
	if left > 0 {
		s.remark(index.dir, "%d of %d images are left out, since they are not in %s, such as %s", left, len(index.images), tables, first)
	}
}
