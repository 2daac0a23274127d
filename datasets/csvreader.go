package datasets

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/internal/memory"
)

// Limits of a line, enough for a colour image of 800x800 pixels.
const (
	csvMaxLine    = 1 << 23 // bytes
	csvMaxColumns = 1 << 21
)

// csvKeptHeadings is the number of columns, from the first, whose headings are kept as they are
// written. It only has to include a column of identifiers, which comes first.
const csvKeptHeadings = 16

// csvMinUnlabelled is the smallest number of pixels of an image without a label. A table with
// fewer columns may have any numbers.
const csvMinUnlabelled = 4 * 4

// csvColumns are the columns of a file of pixels.
type csvColumns struct {
	names    []string // in lower case; numbers without a header
	headings []string // the first names as they are written
	headed   bool     // a header names the columns
	label    int      // -1 for none
	skip     int      // the column that numbers the images, -1 for none
	skipped  string   // the quoted name of the column skip
	heading  string   // the name of the column skip as it is written
	group    int      // the column of the images' groups, -1 for none
	others   []int    // columns that are not read, see Options.OtherColumns
	unread   []string // other columns of labels than the one that Options.Label names
	pixels   int      // number of the remaining columns
}

// csvReader reads lines with a label and pixels.
type csvReader struct {
	csvColumns
	path, groupName string
	labelName       string   // in lower case, see Options.Label
	otherNames      []string // in lower case, see Options.OtherColumns
	data            *bufio.Reader
	end             byte   // of a line: '\n', or '\r' in files of the first Macintosh
	number          int    // of the line, from 1
	line            []byte // the line without its end; valid until the next read
	id              []byte // the image's identifier; valid until the next read
	ofGroup         []byte // the image's group; valid until the next read
	text            []byte // the image's label, if it is no number; valid until the next read

	want     shape   // shape of the images, if the options request one
	floatMax float64 // see Options
	comma    []byte
}

func (r *csvReader) fail(format string, values ...any) error {
	return errors.Errorf("datasets: %s: line %d: %s", r.path, r.number, fmt.Sprintf(format, values...))
}

// checkRoom returns an error if more than limit values were read, and a MemoryError if values do
// not fit into the available memory. They are in a slice that grows by being copied from one of
// half its size.
func (r *csvReader) checkRoom(values, limit int64, available memory.Limit) error {
	if values > limit {
		return r.fail("must have at most %d values in total, got more: divide it into several files, such as train.csv and test.csv", limit)
	}
	if !available.Known() || values <= available.Bytes/2 {
		return nil
	}
	return errors.WithStack(&MemoryError{
		Task: fmt.Sprintf("datasets: %s: reading the images of more than %d lines", r.path, r.number-1), Need: 2 * values, Limit: available,
		Advice: []string{"fewer lines", "the same images as an NPZ file"},
	})
}

// shapeOf returns the shape of an image of the given number of values: the requested one if it
// has that size, or else a square. fits is false if there is neither.
func (r *csvReader) shapeOf(values int) (of shape, fits bool) {
	if values == r.want.size() {
		return r.want, values > 0
	}
	channels, side, fits := squareOf(values)
	return shape{channels, side, side}, fits
}

// next reads the next non-empty line. After the last one it returns a bare io.EOF.
func (r *csvReader) next() error {
	for {
		r.line = r.line[:0]
		r.number++
		for {
			piece, err := r.data.ReadSlice(r.end)
			r.line = append(r.line, piece...)
			if len(r.line) > csvMaxLine {
				return r.fail("must have at most %d bytes per line, one line per image", csvMaxLine)
			}
			if err == nil || err == io.EOF && len(r.line) > 0 {
				break
			}
			if err == io.EOF {
				return err
			}
			if err != bufio.ErrBufferFull {
				return errors.Wrapf(err, "datasets: %s: line %d", r.path, r.number)
			}
		}
		if r.line = bytes.TrimRight(r.line, "\r\n"); len(r.line) > 0 {
			return nil
		}
	}
}

// findEnd sets the end of lines: the first carriage return or line feed, but not a carriage return
// before a line feed. A first line longer than the buffer ends in a line feed.
func (r *csvReader) findEnd() {
	r.end = '\n'
	start, _ := r.data.Peek(r.data.Size()) // an error is repeated by the first read
	if at := bytes.IndexAny(start, "\r\n"); at >= 0 && at+1 < len(start) && start[at] == '\r' && start[at+1] != '\n' {
		r.end = '\r'
	}
}

// start reads the first line and determines the columns.
func (r *csvReader) start() error {
	r.findEnd()
	if err := r.next(); err == io.EOF {
		return r.fail("must have a label and pixels, got the end")
	} else if err != nil {
		return err
	}
	r.line = bytes.TrimPrefix(r.line, []byte("\ufeff"))
	r.comma = []byte(",")
	for _, other := range []string{";", "\t"} {
		if bytes.Contains(r.line, []byte(other)) {
			r.comma = []byte(other)
		}
	}
	odd := -1
	for field := range bytes.SplitSeq(r.line, r.comma) {
		name := strings.ToLower(string(unquoted(field)))
		if odd < 0 && !isNumber(name) { // an error of parsing takes memory
			odd = len(r.names)
		}
		if len(r.names) < csvKeptHeadings {
			r.headings = append(r.headings, string(unquoted(field)))
		}
		if r.names = append(r.names, name); len(r.names) > csvMaxColumns {
			return r.fail("must have at most %d columns, a label and pixels", csvMaxColumns)
		}
	}
	r.headed, r.label, r.skip, r.group, r.pixels = odd >= 0, 0, -1, -1, len(r.names)-1
	if r.headed {
		return r.header(odd)
	}
	_, labelled := r.shapeOf(r.pixels)
	if _, fits := r.shapeOf(len(r.names)); !labelled && fits && len(r.names) >= csvMinUnlabelled {
		r.label, r.pixels = -1, len(r.names)
	}
	return nil
}

// isNumber reports whether a field of the first line is a value, not a heading.
func isNumber(field string) bool {
	_, err := strconv.ParseFloat(field, 64)
	return err == nil && strings.ContainsAny(field, "0123456789") // "nan" may be a heading
}

// indexHeadings are the names, in lower case, of columns that number the images. pandas writes its
// index without a name, in the first column, or as __index_level_0__ in Parquet. Without one of
// them, a column whose name ends in "id" does.
var indexHeadings = []string{"", "id", "index", "imageid", "image_id", "unnamed: 0", "__index_level_0__"}

// indexColumn returns the only column, by names in lower case, that numbers the images, or -1.
// isOther reports other uses of a column whose name ends in "id".
func indexColumn(names []string, isOther func(name string) bool) int {
	only := func(isIndex func(name string) bool) int {
		at := slices.IndexFunc(names, isIndex)
		if at >= 0 && slices.ContainsFunc(names[at+1:], isIndex) {
			return -1
		}
		return at
	}
	isIndex := func(name string) bool { return slices.Contains(indexHeadings, name) }
	if slices.ContainsFunc(names, isIndex) {
		return only(isIndex)
	}
	return only(func(name string) bool {
		return strings.HasSuffix(name, "id") && !isOther(name) && !slices.Contains(classHeadings, name)
	})
}

// header determines the columns by their names. odd is the first column whose heading is not a
// number.
func (r *csvReader) header(odd int) error {
	r.skip = indexColumn(r.names, func(name string) bool {
		return name == r.groupName || name == r.labelName || slices.Contains(r.otherNames, name)
	})
	if r.skip >= 0 {
		r.skipped, r.heading = fmt.Sprintf("%d, %q,", r.skip+1, r.names[r.skip]), r.names[r.skip]
		if r.skip < len(r.headings) {
			r.heading = r.headings[r.skip]
		}
		r.pixels--
	}
	if r.label = slices.Index(r.names, r.labelName); r.labelName == "" || r.label < 0 {
		r.label = column(r.names, classHeadings)
	}
	if r.label < 0 {
		r.pixels++
	}
	if r.group = slices.Index(r.names, r.groupName); r.groupName == "" {
		r.group = -1
	}
	if r.group >= 0 && r.group != r.skip && r.group != r.label {
		r.pixels--
	}
	for at, name := range r.names {
		if at == r.skip || at == r.label || at == r.group {
			continue
		}
		labels := r.labelName != "" && slices.Contains(labelHeadings, name)
		if labels {
			r.unread = append(r.unread, name)
		}
		if labels || slices.Contains(r.otherNames, name) {
			r.others = append(r.others, at)
			r.pixels--
		}
	}
	_, fits := r.shapeOf(r.pixels)
	fits = fits && r.pixels >= csvMinUnlabelled
	if file := column(r.names, fileHeadings); file >= 0 && !(fits && file == r.skip) { // image_id may be either
		return fileTableError{r.fail("must have a label and pixels, got the header of a table of files: give the files, or their directory")}
	}
	if r.label >= 0 {
		return nil
	}
	unlike := r.unlike()
	if fits && len(unlike) == 0 {
		return nil
	}
	if r.mostlyPixels() {
		return r.fail("must have the pixels of a square image, in columns with a number in their names, got %d columns%s", r.pixels, r.described(unlike))
	}
	return r.fail("column %d must be an integer, or a column be called %s, got %.20q", odd+1, strings.Join(classHeadings, ", "), r.names[odd])
}

// fileTableError is the error for a table of files.
type fileTableError struct{ error }

// labelColumn returns the heading of the column with the labels, or "".
func (r *csvReader) labelColumn() string {
	switch {
	case !r.headed || r.label < 0:
		return ""
	case r.label < len(r.headings):
		return r.headings[r.label]
	}
	return r.names[r.label]
}

// unlike returns the names of columns that are not named like pixels, such as "pixel7".
func (r *csvReader) unlike() (names []string) {
	if !r.headed {
		return nil
	}
	for at, name := range r.names {
		if at != r.label && at != r.skip && at != r.group && !slices.Contains(r.others, at) && !strings.ContainsAny(name, "0123456789") {
			names = append(names, name)
		}
	}
	return names
}

// mostlyPixels reports whether more than half of the columns have headings that name pixels, and
// at least csvMinUnlabelled of them.
func (r *csvReader) mostlyPixels() bool {
	pixels := len(r.names) - len(r.unlike())
	return r.headed && 2*pixels > len(r.names) && pixels >= csvMinUnlabelled
}

// described returns the end of an error message, with the columns that are not named like pixels,
// and with those that are accepted next to pixels.
func (r *csvReader) described(names []string) string {
	if len(names) == 0 || len(names) > 8 {
		return ""
	}
	var known []string
	if r.label < 0 {
		known = append(known, "the label (label, class, ...)")
	}
	if r.skip < 0 {
		known = append(known, "the number of the image (id, index, ...)")
	}
	if r.group < 0 && r.groupName != "" {
		known = append(known, strconv.Quote(r.groupName))
	}
	for _, name := range r.otherNames {
		if !slices.Contains(r.names, name) {
			known = append(known, strconv.Quote(name))
		}
	}
	text := ", with " + quoted(names) + " among them"
	if len(known) > 0 {
		text += "; columns next to the pixels may be " + strings.Join(known, " or ")
	}
	return text
}

// first advances to the first image.
func (r *csvReader) first() error {
	if r.headed {
		return r.next()
	}
	return nil
}

// image appends the line's pixels to images, sets ofGroup, and returns the image's label, or sets
// text.
func (r *csvReader) image(images []byte) ([]byte, int32, error) {
	label, at := 0, 0
	r.text = nil
	for field := range bytes.SplitSeq(r.line, r.comma) {
		if at == r.group {
			if r.ofGroup = unquoted(field); len(r.ofGroup) == 0 {
				return nil, 0, r.fail("column %d: must have the image's group, got nothing", at+1)
			}
		}
		if at == r.skip || at == r.group && at != r.label || slices.Contains(r.others, at) {
			if at == r.skip {
				r.id = unquoted(field)
			}
			at++
			continue
		}
		if r.floatMax > 0 && at != r.label && at < len(r.names) {
			pixel, err := r.float(field)
			if err != nil {
				return nil, 0, r.fail("column %d: %v", at+1, err)
			}
			images = append(images, pixel)
			at++
			continue
		}
		value, ok := wholeNumber(unquoted(field))
		switch {
		case at >= len(r.names):
			return nil, 0, r.fail("must have %d columns like the first line, got more", len(r.names))
		case at == r.label && !ok && r.headed && isClassText(field):
			r.text = unquoted(field)
		case at == r.label && r.headed && len(unquoted(field)) == 0:
			label = noLabel
		case at == r.label && (!ok || value >= maxClasses):
			return nil, 0, r.fail("column %d: label must be the name of a class or an integer from 0 to below %d, got %.20q: "+
				"leave the field empty if an image has no label", at+1, maxClasses, field)
		case at == r.label:
			label = value
		case !ok || value > math.MaxUint8:
			return nil, 0, r.fail("column %d: must be an integer from 0 to 255, got %.20q%s", at+1, field, unitAdvice(field))
		default:
			images = append(images, byte(value))
		}
		at++
	}
	if at < len(r.names) {
		return nil, 0, r.fail("must have %d columns like the first line, got %d", len(r.names), at)
	}
	return images, int32(label), nil
}

// float returns the byte for a pixel that is a number from 0 to floatMax.
func (r *csvReader) float(field []byte) (byte, error) {
	value, err := strconv.ParseFloat(string(unquoted(field)), 64)
	if err != nil {
		return 0, errors.Errorf("must be a number, got %.20q", field)
	}
	return pixelByte(value, r.floatMax)
}

// unitAdvice returns what to do about a field that is a fraction between 0 and 1.
func unitAdvice(field []byte) string {
	if value, err := strconv.ParseFloat(string(unquoted(field)), 64); err == nil && value > 0 && value < 1 {
		return ": multiply pixels from 0 to 1 by 255 and round them, or state the largest value as float-max"
	}
	return ""
}

// unquoted returns a field without surrounding space and quotes.
func unquoted(field []byte) []byte {
	field = bytes.TrimSpace(field)
	if n := len(field); n >= 2 && field[0] == '"' && field[n-1] == '"' {
		field = field[1 : n-1]
	}
	return field
}

// isClassText reports whether a field is the name of a class, and neither a number nor missing.
func isClassText(field []byte) bool {
	text := string(unquoted(field))
	_, err := strconv.ParseFloat(text, 64)
	return err != nil && text != "" && !isMissingWord(text)
}

// wholeNumber parses a decimal integer of up to 9 digits, which may end in ".0", as in columns that
// pandas keeps as floats.
func wholeNumber(field []byte) (int, bool) {
	if point := bytes.IndexByte(field, '.'); point > 0 && len(bytes.Trim(field[point+1:], "0")) == 0 {
		field = field[:point]
	}
	value := 0
	for _, digit := range field {
		if digit < '0' || digit > '9' {
			return 0, false
		}
		value = 10*value + int(digit-'0')
	}
	return value, 1 <= len(field) && len(field) <= 9
}
