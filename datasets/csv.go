package datasets

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"math"
	"path/filepath"
	"slices"
	"strings"

	"github.com/pkg/errors"
)

// Limits of a line, enough for a colour image of 800x800 pixels.
const (
	csvMaxLine    = 1 << 23 // bytes
	csvMaxColumns = 1 << 21
)

// csvStem returns a file's name in lower case without .csv or .csv.gz, and whether it had one.
func csvStem(path string) (string, bool) {
	name := strings.TrimSuffix(strings.ToLower(filepath.Base(path)), ".gz")
	return strings.CutSuffix(name, ".csv")
}

func isCSV(path string) bool {
	_, found := csvStem(path)
	return found && !isDir(path)
}

// csvFiles returns a directory's CSV files of pixels by Split, "" for none: train.csv,
// fashion-mnist_train.csv and the like.
func csvFiles(dir string) (paths [3]string, err error) {
	entries, err := readDir(dir, "")
	if err != nil {
		return paths, err
	}
	for _, entry := range entries {
		stem, found := csvStem(entry.name)
		if !found || entry.isDir {
			continue
		}
		for split, words := range splitWords {
			if !slices.Contains(words, stem[strings.LastIndexAny(stem, "-_")+1:]) {
				continue
			}
			if paths[split] != "" {
				return paths, errors.Errorf("datasets: %s: must have one file of the %[4]s split, got %[2]s and %[3]s",
					dir, filepath.Base(paths[split]), entry.name, Split(split))
			}
			paths[split] = filepath.Join(dir, entry.name)
		}
	}
	return paths, nil
}

// isCSVDir reports whether the training file of a directory begins like images in CSV, and not like
// a table of image files.
func isCSVDir(path string) bool {
	if !isDir(path) {
		return false
	}
	paths, err := csvFiles(onlyDir(path))
	if paths[Train] == "" {
		return false
	}
	if err != nil {
		return true // opening it returns the error
	}
	file, err := openFile(paths[Train])
	if err != nil {
		return false
	}
	defer file.Close()
	r := csvReader{path: paths[Train]}
	if r.data, err = decompress(file); err != nil {
		return true
	}
	const minPixels = 2 * 2 // of an image
	return r.start() == nil && r.pixels >= minPixels
}

// openCSVDir opens a directory with a CSV file for each split.
func openCSVDir(path string, options Options) (*Splits, error) {
	paths, err := csvFiles(onlyDir(path))
	if err != nil {
		return nil, err
	}
	return openCSVFiles(path, paths, options)
}

// openCSV opens one CSV file.
func openCSV(path string, options Options) (*Splits, error) {
	return openCSVFiles(path, [3]string{Train: path}, options)
}

func openCSVFiles(path string, paths [3]string, options Options) (*Splits, error) {
	var parts [3]*arrayPart
	hashes := map[string]string{}
	for split, file := range paths {
		if file == "" {
			continue
		}
		opened, err := openFile(file)
		if err != nil {
			return nil, errors.Wrap(err, "datasets")
		}
		hash := sha256.New()
		parts[split], err = readCSV(file, io.TeeReader(opened, hash), idxMaxSize)
		opened.Close()
		if err != nil {
			return nil, err
		}
		if labels := parts[split].labels; !parts[split].headed {
			options.remark("%s has no header: its first column is read as the label, with values from %d to %d", file, slices.Min(labels), slices.Max(labels))
		}
		hashes[filepath.Base(file)] = hex.EncodeToString(hash.Sum(nil))
	}
	return arraySplits(path, parts, nil, hashes)
}

// readCSV reads images of at most limit values in total, one per line, as described at Open. Memory
// grows with the lines that arrive.
func readCSV(path string, from io.Reader, limit int64) (*arrayPart, error) {
	data, err := decompress(from)
	if err != nil {
		return nil, errors.Wrapf(err, "datasets: %s: offset 0: gzip header", path)
	}
	if available := availableMemory(); available > 0 {
		limit = min(limit, available)
	}
	r := &csvReader{path: path, data: data}
	if err := r.start(); err != nil {
		return nil, err
	}
	part := &arrayPart{channels: 1, headed: r.headed}
	if r.pixels%3 == 0 && isSquare(r.pixels/3) {
		part.channels = 3
	} else if !isSquare(r.pixels) {
		return nil, r.fail("must have the pixels of a square image next to the label, N x N or N x N x 3, got %d columns", r.pixels)
	}
	part.height = int(math.Round(math.Sqrt(float64(r.pixels / part.channels))))
	part.width = part.height
	for err = r.first(); err == nil; err = r.next() {
		if int64(len(part.images)+r.pixels) > limit {
			return nil, r.fail("must have at most %d values in total", limit)
		}
		label := int32(0)
		if part.images, label, err = r.image(part.images); err != nil {
			return nil, err
		}
		part.labels = append(part.labels, label)
	}
	if err != io.EOF {
		return nil, err
	}
	if len(part.labels) == 0 {
		return nil, r.fail("must have at least one image, got the end")
	}
	part.images = planar(part.images, part.channels, part.height, part.width)
	return part, nil
}

func isSquare(n int) bool {
	side := int(math.Round(math.Sqrt(float64(n))))
	return n > 0 && side*side == n
}

// csvReader reads lines with a label and pixels.
type csvReader struct {
	path          string
	data          *bufio.Reader
	number        int    // of the line, from 1
	line          []byte // without its line end; valid until the next read
	comma         []byte
	label, pixels int // the column of the label, and the number of other columns
	headed        bool
}

func (r *csvReader) fail(format string, values ...any) error {
	return errors.Errorf("datasets: %s: line %d: "+format, append([]any{r.path, r.number}, values...)...)
}

// next reads the next non-empty line. After the last one it returns a bare io.EOF.
func (r *csvReader) next() error {
	for {
		r.line = r.line[:0]
		r.number++
		for {
			piece, err := r.data.ReadSlice('\n')
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

// start reads the first line and determines the columns.
func (r *csvReader) start() error {
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
	var names []string
	odd := -1
	for field := range bytes.SplitSeq(r.line, r.comma) {
		name := strings.ToLower(string(unquoted(field)))
		if _, ok := wholeNumber([]byte(name)); !ok && odd < 0 {
			odd = len(names)
		}
		if names = append(names, name); len(names) > csvMaxColumns {
			return r.fail("must have at most %d columns, a label and pixels", csvMaxColumns)
		}
	}
	r.pixels = len(names) - 1
	if r.headed = odd >= 0; !r.headed {
		return nil
	}
	if column(names, fileHeadings) >= 0 {
		return r.fail("must have a label and pixels, got the header of a table of files")
	}
	if r.label = column(names, classHeadings); r.label < 0 {
		return r.fail("column %d must be an integer, or a column be called %[3]s, got %[2].20q",
			odd+1, names[odd], strings.Join(classHeadings, ", "))
	}
	return nil
}

// first advances to the first image.
func (r *csvReader) first() error {
	if r.headed {
		return r.next()
	}
	return nil
}

// image appends the line's pixels to images and returns its label.
func (r *csvReader) image(images []byte) ([]byte, int32, error) {
	label, at := 0, 0
	for field := range bytes.SplitSeq(r.line, r.comma) {
		value, ok := wholeNumber(unquoted(field))
		switch {
		case at > r.pixels:
			return nil, 0, r.fail("must have %d columns like the first line, got more", r.pixels+1)
		case at == r.label && (!ok || value >= maxClasses):
			return nil, 0, r.fail("column %d: label must be an integer from 0 to below %[3]d, got %.20[2]q", at+1, field, maxClasses)
		case at == r.label:
			label = value
		case !ok || value > math.MaxUint8:
			return nil, 0, r.fail("column %d: must be an integer from 0 to 255, got %.20q", at+1, field)
		default:
			images = append(images, byte(value))
		}
		at++
	}
	if at <= r.pixels {
		return nil, 0, r.fail("must have %[2]d columns like the first line, got %[1]d", at, r.pixels+1)
	}
	return images, int32(label), nil
}

// unquoted returns a field without surrounding space and quotes.
func unquoted(field []byte) []byte {
	field = bytes.TrimSpace(field)
	if n := len(field); n >= 2 && field[0] == '"' && field[n-1] == '"' {
		field = field[1 : n-1]
	}
	return field
}

// wholeNumber parses a decimal integer of up to 9 digits.
func wholeNumber(field []byte) (int, bool) {
	value := 0
	for _, digit := range field {
		if digit < '0' || digit > '9' {
			return 0, false
		}
		value = 10*value + int(digit-'0')
	}
	return value, 1 <= len(field) && len(field) <= 9
}
