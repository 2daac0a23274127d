package report

import (
	"bufio"
	"encoding/csv"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/evaluate"
	"github.com/pollen-ml/pollen/internal/file"
)

// ReadSubject reads another program's predictions for the examples of like: a text file with a line
// per example and a probability per class, separated by blanks, commas, semicolons or tabs, as
// numpy.savetxt writes them. Empty lines and lines that begin with # are skipped. The subject's
// name is the path.
//
// The first line may name the columns, after a # or not: each class once, as it is or as in
// "p(rose)", in any order, and perhaps a column file (or filename, image or path), by which lines
// are matched with the files of the examples. Other columns of pollen predict --csv are skipped.
// Lines of other files, and of files that it could not read, are skipped. Without names, columns
// are the classes in order, and lines the examples in order. remark has the orders that were
// assumed, or counts what was skipped. classNames and files may be nil.
//
// It returns an error for a wrong number of lines or of numbers in a line, for names that do not
// match, and if a line is not a distribution.
func ReadSubject(path string, like *evaluate.Predictions, classNames, files []string) (s Subject, remark string, err error) {
	s = Subject{Name: path, Optimizer: true}
	r := predictionsReader{path: path, examples: len(like.Labels), classes: like.Classes, classNames: classNames, files: files}
	probabilities, err := r.read()
	if err != nil {
		return s, "", err
	}
	read, err := evaluate.NewPredictions(like.Name, probabilities, like.Labels, like.Classes)
	if err != nil {
		return s, "", errors.WithMessage(err, path)
	}
	s.Assessment, err = evaluate.Assess(evaluate.Case{In: read})
	return s, r.orders(), err
}

// predictionsReader reads the [N K] probabilities of a file.
type predictionsReader struct {
	path              string
	examples, classes int      // examples are 0 if unknown
	classNames, files []string // nil if unknown

	number  int      // of the line, from 1
	comma   rune     // between fields; 0 for blanks, or any of several
	columns []int    // with names: class of each column, or one of the constants below
	rows    []string // with a column of files: the file of each line
	others  int      // lines of files that are not test images
}

// Columns that are not classes.
const (
	columnSkipped = -1 - iota
	columnFile
	columnError // why an image has no answer
)

// fileColumns are names, in lower case, of a column of files. skippedColumns are the names of the
// other columns of pollen predict --csv.
var (
	fileColumns    = []string{"file", "filename", "image", "path"}
	skippedColumns = []string{"id", "class", "confidence", "entropy", "mutual_information", "prediction_set", "set_size", "in_distribution", "refer"}
)

// errorColumn is the name, in lower case, of the column of errors of pollen predict --csv.
const errorColumn = "error"

func (r *predictionsReader) fail(format string, values ...any) error {
	return errors.Errorf("report: %s: line %d: %s", r.path, r.number, fmt.Sprintf(format, values...))
}

func (r *predictionsReader) read() ([]float64, error) {
	opened, err := file.Open(r.path, 0)
	if err != nil {
		return nil, errors.WithMessage(err, "report")
	}
	defer opened.Close()
	var probabilities []float64
	var first []string // the fields of the first line of numbers
	lines := bufio.NewScanner(opened)
	lines.Buffer(nil, 1<<24)
	for lines.Scan() {
		r.number++
		if text := lines.Text(); strings.ContainsRune(text, 0) || !utf8.ValidString(text) {
			return nil, r.fail("must be text in UTF-8, got other data: save an array of probabilities by numpy.savetxt(file, probabilities)")
		}
		line := strings.TrimSpace(strings.TrimPrefix(lines.Text(), "\ufeff"))
		if line == "" {
			continue
		}
		if r.columns == nil && first == nil {
			names, comment := strings.CutPrefix(line, "#")
			named, err := r.header(names, comment)
			if named {
				continue
			}
			if err != nil && !comment {
				return nil, err
			}
		}
		if line[0] == '#' {
			continue
		}
		fields, err := r.fields(line)
		if err != nil {
			return nil, err
		}
		if first == nil {
			first = fields
		}
		if probabilities, err = r.appendRow(probabilities, fields); err != nil {
			return nil, err
		}
	}
	if err := lines.Err(); err != nil {
		return nil, errors.Wrapf(err, "report: %s", r.path)
	}
	if probabilities == nil {
		return nil, errors.Errorf("report: %s: must have a line of probabilities per example, got none", r.path)
	}
	if r.rows != nil {
		return r.byFile(probabilities)
	}
	if r.columns == nil && r.examples > 0 && len(probabilities) == (r.examples+1)*r.classes {
		return r.byNumber(first, probabilities)
	}
	return probabilities, nil
}

// fields splits a line.
func (r *predictionsReader) fields(line string) ([]string, error) {
	if r.comma == 0 {
		return strings.FieldsFunc(line, func(c rune) bool { return strings.ContainsRune(" \t,;", c) }), nil
	}
	reader := csv.NewReader(strings.NewReader(line))
	reader.Comma, reader.TrimLeadingSpace = r.comma, true
	fields, err := reader.Read()
	if parse := (*csv.ParseError)(nil); errors.As(err, &parse) { // whose line is always 1
		return nil, r.fail("column %d: %v", parse.Column, parse.Err)
	}
	return fields, errors.Wrapf(err, "report: %s: line %d", r.path, r.number)
}

// header reads a line that may name the columns. It reports false for a line of numbers, unless it
// is a comment.
func (r *predictionsReader) header(line string, comment bool) (named bool, err error) {
	r.comma = 0
	defer func() {
		if !named {
			r.comma = 0
		}
	}()
	for _, comma := range ",;\t" {
		if strings.ContainsRune(line, comma) {
			r.comma = comma
			break
		}
	}
	names, err := r.fields(line)
	if err != nil || !comment && !slices.ContainsFunc(names, func(name string) bool { return !isNumber(name) }) {
		return false, err
	}
	columns := make([]int, len(names))
	seen := make([]bool, r.classes)
	for i, name := range names {
		name = strings.TrimSpace(name)
		lower := strings.ToLower(name)
		class := slices.Index(r.classNames, name)
		if inside, ok := strings.CutPrefix(name, "p("); ok && class < 0 {
			class = slices.Index(r.classNames, strings.TrimSuffix(inside, ")"))
		}
		switch {
		case class >= 0 && seen[class]:
			return false, r.fail("must have a column for each class, got two for %q", name)
		case class >= 0:
			columns[i], seen[class] = class, true
		case slices.Contains(fileColumns, lower) && !slices.Contains(columns[:i], columnFile):
			columns[i] = columnFile
		case slices.Contains(skippedColumns, lower):
			columns[i] = columnSkipped
		case lower == errorColumn:
			columns[i] = columnError
		default:
			return false, r.fail("column %d must be a number, the name of a class%s or file, got %.40q", i+1, inBrackets(r.classNames), name)
		}
	}
	if missing := slices.Index(seen, false); missing >= 0 {
		return false, r.fail("must have a column for each class, got none for %q", r.classNames[missing])
	}
	if slices.Contains(columns, columnFile) && r.files == nil {
		return false, r.fail("must have no column of files, since the test images are not files")
	}
	r.columns = columns
	return true, nil
}

func isNumber(field string) bool {
	_, err := strconv.ParseFloat(strings.TrimSpace(field), 64)
	return err == nil
}

// appendRow appends the probabilities of a line, by class.
func (r *predictionsReader) appendRow(probabilities []float64, fields []string) ([]float64, error) {
	want := r.classes
	if r.columns != nil {
		want = len(r.columns)
	}
	if len(fields) != want {
		return nil, errors.Errorf("report: %s: line %d must have %[4]d numbers, one per class, got %[3]d", r.path, r.number, len(fields), want)
	}
	if at := slices.Index(r.columns, columnError); at >= 0 && fields[at] != "" {
		r.others++ // an image that could not be read, which is no test image
		return probabilities, nil
	}
	row := make([]float64, r.classes)
	for i, field := range fields {
		class := i
		if r.columns != nil {
			class = r.columns[i]
		}
		switch class {
		case columnFile:
			r.rows = append(r.rows, field)
			continue
		case columnSkipped, columnError:
			continue
		}
		var err error
		if row[class], err = strconv.ParseFloat(strings.TrimSpace(field), 64); err != nil {
			return nil, errors.Wrapf(err, "report: %s: line %d", r.path, r.number)
		}
	}
	return append(probabilities, row...), nil
}

// byNumber returns the probabilities without the first line if that has the names of the classes,
// which are numbers.
func (r *predictionsReader) byNumber(names []string, probabilities []float64) ([]float64, error) {
	order := make([]int, len(names))
	for column, name := range names {
		order[column] = slices.Index(r.classNames, name)
		if order[column] < 0 || slices.Contains(order[:column], order[column]) {
			return probabilities, nil
		}
	}
	r.columns = order
	sorted := make([]float64, len(probabilities)-r.classes)
	for i, p := range probabilities[r.classes:] {
		sorted[i/r.classes*r.classes+order[i%r.classes]] = p
	}
	return sorted, nil
}

// byFile returns the probabilities in the order of the examples' files. A line names a file by its
// path, which may begin with further directories, or by its base name if that is unique.
func (r *predictionsReader) byFile(probabilities []float64) ([]float64, error) {
	at, bases := map[string]int{}, map[string]int{}
	for i, name := range r.files {
		at[name] = i
		if _, known := bases[path.Base(name)]; known {
			i = -1
		}
		bases[path.Base(name)] = i
	}
	find := func(name string) int {
		for rest, more := name, true; more; _, rest, more = strings.Cut(rest, "/") {
			if i, known := at[rest]; known {
				return i
			}
		}
		if i, known := bases[name]; known {
			return i
		}
		return -1
	}
	sorted, from := make([]float64, len(r.files)*r.classes), make([]string, len(r.files))
	for line, name := range r.rows {
		i := find(strings.ReplaceAll(strings.TrimSpace(name), `\`, "/"))
		if i < 0 {
			r.others++
			continue
		}
		if from[i] != "" {
			return nil, errors.Errorf("report: %s: must have one line for each test image, got %s and %s for %s", r.path, from[i], name, r.files[i])
		}
		from[i] = name
		copy(sorted[i*r.classes:(i+1)*r.classes], probabilities[line*r.classes:])
	}
	if missing := slices.Index(from, ""); missing >= 0 {
		return nil, errors.Errorf("report: %s: must have a line for each of %d test images, got none for %s; the lines are for %s",
			r.path, len(r.files), r.files[missing], shortList(r.rows[:min(3, len(r.rows))]))
	}
	return sorted, nil
}

// orders describes the orders of columns and lines that no names determine.
func (r *predictionsReader) orders() string {
	var orders []string
	if r.columns == nil && r.classNames != nil {
		orders = append(orders, "columns are read as the classes "+shortList(r.classNames))
	}
	if r.rows == nil {
		lines := "lines as the test images in their order"
		if r.files != nil {
			lines += ", from " + r.files[0] + " to " + r.files[len(r.files)-1]
		}
		orders = append(orders, lines)
	}
	if r.others > 0 {
		return fmt.Sprintf("%s: %d lines are not of test images, and skipped", r.path, r.others)
	}
	if len(orders) == 0 || r.classNames == nil {
		return ""
	}
	return fmt.Sprintf("%s: %s; a first line that names the columns by class, and one of them file, would match them by name",
		r.path, strings.Join(orders, ", "))
}

func inBrackets(names []string) string {
	if names == nil {
		return ""
	}
	return " (" + shortList(names) + ")"
}

// shortList lists the first names.
func shortList(names []string) string {
	const shown = 8
	if len(names) > shown {
		return strings.Join(names[:shown], ", ") + ", ..."
	}
	return strings.Join(names, ", ")
}
