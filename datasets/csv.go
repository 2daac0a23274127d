package datasets

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/internal/memory"
)

func isCSV(path string) bool {
	_, found := csvStem(path)
	return found && !isDir(path)
}

// csvFiles returns a directory's CSV files of pixels by Split, such as train.csv or
// fashion-mnist_train.csv. The path of a split without a file is "".
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

// isCSVDir reports whether the first file of a directory, by Split, begins like images in CSV, and
// not like a table of image files.
func isCSVDir(path string) bool {
	if !isDir(path) {
		return false
	}
	paths, err := csvFiles(onlyDir(path))
	at := slices.IndexFunc(paths[:], func(path string) bool { return path != "" })
	if at < 0 {
		return false
	}
	if err != nil {
		return true // opening it returns the error
	}
	file, err := openFile(paths[at])
	if err != nil {
		return false
	}
	defer file.Close()
	r := csvReader{path: paths[at]}
	if r.data, err = decompress(file); err != nil {
		return true
	}
	const minPixels = 2 * 2 // of an image
	if r.start() == nil {
		return r.pixels >= minPixels
	}
	// Other columns next to pixels are an error of reading them.
	return r.mostlyPixels() && column(r.names, fileHeadings) < 0
}

// readCSVDir reads a directory with a CSV file for each split.
func readCSVDir(path string, options Options) (arraySet, error) {
	paths, err := csvFiles(onlyDir(path))
	if err != nil {
		return arraySet{}, err
	}
	return readCSVFiles(paths, options)
}

// readCSVFile reads one CSV file.
func readCSVFile(path string, options Options) (arraySet, error) {
	return readCSVFiles([3]string{Train: path}, options)
}

func readCSVFiles(paths [3]string, options Options) (arraySet, error) {
	set := arraySet{hashes: map[string]string{}}
	for split, file := range paths {
		if file == "" {
			continue
		}
		opened, err := openFile(file)
		if err != nil {
			return set, errors.Wrap(err, "datasets")
		}
		hash := sha256.New()
		part, columns, err := readCSV(file, io.TeeReader(opened, hash), options)
		opened.Close()
		if err != nil {
			return set, err
		}
		if part.labels != nil && !columns.headed {
			options.remark("%s has no header: its first column is read as the label, with values from %d to %d",
				filepath.Base(file), slices.Min(part.labels), slices.Max(part.labels))
		}
		if columns.skipped != "" && part.ids == nil {
			options.remark("%s: column %s is not read, since it numbers the images", filepath.Base(file), columns.skipped)
		}
		if len(columns.unread) > 0 {
			options.remark("%s: columns that are not read: %s", filepath.Base(file), abbreviated(columns.unread))
		}
		set.parts[split] = part
		set.hashes[filepath.Base(file)] = hex.EncodeToString(hash.Sum(nil))
	}
	isNamed := func(p *arrayPart) bool { return p != nil && p.labelNames != nil }
	if slices.ContainsFunc(set.parts[:], isNamed) {
		for _, part := range set.parts {
			if part != nil && part.labels != nil && part.labelNames == nil {
				part.nameNumbers()
			}
		}
	}
	var err error
	set.classNames, err = nameLabels(cmp.Or(paths[:]...), set.parts)
	return set, err
}

// numberOf returns the number of an image's label, which is text unless that is nil. The first text
// makes names of all labels, which have numbers by the order of their names in labelNames.
func (p *arrayPart) numberOf(label int32, text []byte, numbers map[string]int32) (int32, error) {
	if label == noLabel || text == nil && p.labelNames == nil {
		return label, nil
	}
	if p.labelNames == nil {
		p.nameNumbers()
		for i, name := range p.labelNames {
			numbers[name] = int32(i)
		}
	}
	if text == nil {
		text = strconv.AppendInt(nil, int64(label), 10)
	}
	number, known := numbers[string(text)]
	if !known {
		if len(p.labelNames) == maxClasses {
			return 0, errors.Errorf("must have at most %d classes, got more", maxClasses)
		}
		if !utf8.Valid(text) {
			return 0, errors.Errorf("the name of a class must be UTF-8, got %.20q", text)
		}
		number = int32(len(p.labelNames))
		p.labelNames = append(p.labelNames, string(text))
		numbers[string(text)] = number
	}
	return number, nil
}

// nameNumbers makes names of labels that are numbers.
func (p *arrayPart) nameNumbers() {
	p.labelNames = []string{}
	numbers := map[int32]int32{}
	for i, label := range p.labels {
		if label == noLabel {
			continue
		}
		number, known := numbers[label]
		if !known {
			number = int32(len(p.labelNames))
			numbers[label] = number
			p.labelNames = append(p.labelNames, strconv.Itoa(int(label)))
		}
		p.labels[i] = number
	}
}

// readCSV reads images, one per line, as described at Open. Memory grows with the lines that
// arrive.
func readCSV(path string, from io.Reader, options Options) (*arrayPart, csvColumns, error) {
	r, err := newCSVReader(path, from, options)
	if err != nil {
		return nil, csvColumns{}, err
	}
	part, err := r.read(options)
	return part, r.csvColumns, err
}

// newCSVReader returns a reader at the first image, with the columns that the options ask for.
func newCSVReader(path string, from io.Reader, options Options) (*csvReader, error) {
	group := options.GroupColumn()
	var others []string
	for _, name := range options.OtherColumns {
		others = append(others, strings.ToLower(name))
	}
	data, err := decompress(from)
	if err != nil {
		return nil, errors.Wrapf(err, "datasets: %s: offset 0: gzip header", path)
	}
	r := &csvReader{
		path: path, data: data, groupName: strings.ToLower(group), labelName: strings.ToLower(options.Label), otherNames: others,
		want: shape{options.Channels, options.Height, options.Width}, floatMax: options.FloatMax,
	}
	if err := r.start(); err != nil {
		return nil, err
	}
	if group != "" && r.group < 0 {
		return nil, invalid("Group", "%s: must have a header with the column %s, got none", path, group)
	}
	return r, nil
}

// read reads all images.
func (r *csvReader) read(options Options) (*arrayPart, error) {
	of, fits := r.shapeOf(r.pixels)
	if !fits {
		text := "must have the pixels of a square image next to the label, N x N or N x N x 3, got %d columns%s"
		if n := r.want.size(); n > 0 {
			text = fmt.Sprintf("must have the %d pixels of an image of %dx%dx%d, or those of a square one, got %%d columns%%s",
				n, r.want.height, r.want.width, r.want.channels)
		}
		return nil, r.fail(text, r.pixels, r.described(r.unlike()))
	}
	part := &arrayPart{name: r.path, labelColumn: r.labelColumn(), channels: of.channels, height: of.height, width: of.width}
	keepsIDs := options.Unlabelled && r.skip >= 0
	if keepsIDs {
		part.idName = r.heading
	}
	limit, available := options.limit(idxMaxSize), memory.Available()
	names := map[string]string{}  // of groups, each stored once
	classes := map[string]int32{} // numbers of the part's labelNames
	err := r.first()
	for ; err == nil; err = r.next() {
		if err := r.checkRoom(int64(len(part.images)+r.pixels), limit, available); err != nil {
			return nil, err
		}
		label := int32(0)
		if part.images, label, err = r.image(part.images); err != nil {
			return nil, err
		}
		if keepsIDs {
			part.ids = append(part.ids, string(r.id))
		}
		if r.label >= 0 {
			if label, err = part.numberOf(label, r.text, classes); err != nil {
				return nil, r.fail("column %d: %v", r.label+1, err)
			}
			part.labels = append(part.labels, label)
		}
		if r.group >= 0 {
			name, known := names[string(r.ofGroup)]
			if !known {
				name = string(r.ofGroup)
				names[name] = name
			}
			part.groups = append(part.groups, name)
		}
	}
	if err != io.EOF {
		return nil, err
	}
	if len(part.images) == 0 {
		return nil, r.fail("must have at least one image, got the end")
	}
	part.images = ChannelsFirst(part.images, part.channels, part.height, part.width)
	return part, nil
}
