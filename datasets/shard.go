package datasets

import (
	"bytes"
	"fmt"
	"io"
	"strconv"
	"unicode/utf8"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/datasets/internal/parquet"
)

// shard is a Parquet file of a data set.
type shard struct {
	path    string
	name    string // in data sets and remarks, with slashes
	content []byte // of a file in memory, or nil
	options Options
	idName  string // the column of identifiers, "" for none
}

// place returns the name of a row, which is numbered from 0 as in pandas.
func (s *shard) place(row int) string { return fmt.Sprintf("%s[%d]", s.name, row) }

// open opens the file, and chooses its columns.
func (s *shard) open() (io.Closer, *parquet.File, parquetColumns, error) {
	source, size, err := s.source()
	if err != nil {
		return nil, nil, parquetColumns{}, errors.Wrap(err, "datasets")
	}
	var columns parquetColumns
	file, err := parquet.Open(source, size, s.options.limit(parquet.MaxPage))
	if err == nil {
		columns, err = chooseColumns(file, s.options)
	}
	if err != nil {
		source.Close()
		return nil, nil, columns, s.wrap(err)
	}
	return source, file, columns, nil
}

// source opens the content, and returns its size.
func (s *shard) source() (source interface {
	io.ReaderAt
	io.Closer
}, size int64, err error) {
	if s.content != nil {
		content := bytes.NewReader(s.content)
		return struct {
			io.ReaderAt
			io.Closer
		}{content, io.NopCloser(content)}, content.Size(), nil
	}
	opened, err := openFile(s.path)
	if err != nil {
		return nil, 0, err
	}
	info, err := opened.Stat()
	if err != nil {
		opened.Close()
		return nil, 0, err
	}
	return opened, info.Size(), nil
}

// wrap names the file in an error.
func (s *shard) wrap(err error) error { return errors.WithMessagef(err, "datasets: %s", s.path) }

// rowReader reads the images of a shard in the order of rows.
type rowReader struct {
	shard  *shard
	opened io.Closer // nil if it cannot be opened
	values *parquet.Values
	next   int
	err    error // of all further rows
}

func (s *shard) rows() *rowReader {
	r := &rowReader{shard: s}
	var file *parquet.File
	var columns parquetColumns
	if r.opened, file, columns, r.err = s.open(); r.err == nil {
		r.values, r.err = file.Values(columns.image)
	}
	return r
}

func (r *rowReader) close() {
	if r.opened != nil {
		r.opened.Close()
	}
}

// read returns the image in a row that is not before the last one, valid until the next call.
func (r *rowReader) read(row int) ([]byte, error) {
	for r.err == nil {
		value, err := r.values.Next()
		if err != nil {
			r.err = err
			if err == io.EOF {
				r.err = errors.New("the file has changed: it has fewer rows")
			}
			break
		}
		if r.next++; r.next <= row {
			continue
		}
		switch {
		case value.Null:
			return nil, errors.New("must have the bytes of an image, got none: a path is not followed")
		case len(value.Bytes) > maxFile:
			return nil, errors.Errorf("an image must have at most %d bytes", maxFile)
		}
		return value.Bytes, nil
	}
	return nil, r.err
}

// maxPath is the largest size of a path or a label in a row.
const maxPath = 4096

// shardRow has what a row has next to the bytes of its image.
type shardRow struct {
	class string // "" for none
	path  string
	group string
	id    string
}

// eachRow calls use for each row of a file, with the columns that are read, without the images.
func (s *shard) eachRow(use func(row int, r shardRow) error) (parquetColumns, error) {
	opened, file, columns, err := s.open()
	if err != nil {
		return columns, err
	}
	defer opened.Close()
	var texts [4]*textColumn
	for i, c := range []*parquet.Column{columns.label, columns.path, columns.group, columns.id} {
		if texts[i], err = newTextColumn(file, c); err != nil {
			return columns, s.wrap(err)
		}
	}
	for row := range int(file.Rows) {
		if err := s.options.context().Err(); row%1000 == 0 && err != nil {
			return columns, errors.Wrapf(err, "datasets: %s", s.path)
		}
		var read [4]string
		for i, t := range texts {
			if read[i], err = t.next(); err != nil {
				return columns, s.wrap(err)
			}
		}
		r := shardRow{path: read[1], group: read[2], id: read[3]}
		if columns.label != nil {
			if r.class, err = columns.class(read[0]); err != nil {
				return columns, s.wrap(errors.WithMessagef(err, "row %d: column %s", row, columns.label.Name))
			}
		}
		if columns.group != nil && r.group == "" {
			return columns, invalid("Group", "%s: row %d: %s must not be empty, since it is the group of the image", s.path, row, columns.group.Name)
		}
		if err := use(row, r); err != nil {
			return columns, err
		}
	}
	return columns, nil
}

// class returns the class of a label, or "" if the label is missing: -1, null or empty.
func (c parquetColumns) class(label string) (string, error) {
	if c.label.Type == parquet.Text {
		class := canonicalClass(label)
		return class, checkClass(class)
	}
	number, err := strconv.ParseInt(label, 10, 64)
	switch {
	case label == "" || number == -1:
		return "", nil
	case err != nil || number < 0:
		return "", errors.Errorf("a label must be 0 or more, or -1 for none, got %s", label)
	case c.names == nil:
		return label, nil
	case number >= int64(len(c.names)):
		return "", errors.Errorf("a label must be below %[2]d, the number of classes, got %[1]s", label, len(c.names))
	}
	class := canonicalClass(c.names[number])
	return class, checkClass(class)
}

// textColumn reads integers and text as text, each stored once.
type textColumn struct {
	values    *parquet.Values
	name      string
	isInteger bool
	known     map[string]string
}

// newTextColumn returns a reader of a column, which may be nil.
func newTextColumn(file *parquet.File, c *parquet.Column) (*textColumn, error) {
	if c == nil {
		return nil, nil
	}
	values, err := file.Values(*c)
	return &textColumn{values: values, name: c.Name, isInteger: c.Type == parquet.Integer, known: map[string]string{}}, err
}

// next returns the value of the next row, "" for null and without a column.
func (t *textColumn) next() (string, error) {
	if t == nil {
		return "", nil
	}
	value, err := t.values.Next()
	switch {
	case err == io.EOF:
		return "", errors.Errorf("column %s: must have a value for each row", t.name)
	case err != nil || value.Null:
		return "", err
	case t.isInteger:
		value.Bytes = strconv.AppendInt(nil, value.Integer, 10)
	case len(value.Bytes) > maxPath:
		return "", errors.Errorf("column %s: text must have at most %d bytes, got %d", t.name, maxPath, len(value.Bytes))
	}
	if known, is := t.known[string(value.Bytes)]; is {
		return known, nil
	}
	text := string(value.Bytes)
	if !utf8.ValidString(text) {
		return "", errors.Errorf("column %s: text must be UTF-8, got %q", t.name, text)
	}
	t.known[text] = text
	return text, nil
}
