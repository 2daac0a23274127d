package datasets

import (
	"archive/tar"
	"fmt"
	"io"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/pkg/errors"
)

// CIFAR-10 and CIFAR-100 (A. Krizhevsky, "Learning multiple layers of features
// from tiny images", 2009) have images of 3x32x32 bytes.
const (
	cifarSide  = 32
	cifarImage = 3 * cifarSide * cifarSide
)

// cifarForm is a row of the table of published forms.
type cifarForm struct {
	train, test []string
	names       string // the file with the class names
	labels      int    // bytes before each image, the last of them its label; 0 for pickled files
	labelKey    string // key of the pickled labels
	namesKey    string // key of the pickled names
}

// cifarForms is the table of forms. CIFAR-100 is read with its 100 fine labels.
var cifarForms = []cifarForm{
	{cifarBatches(".bin"), []string{"test_batch.bin"}, "batches.meta.txt", 1, "", ""},
	{[]string{"train.bin"}, []string{"test.bin"}, "fine_label_names.txt", 2, "", ""},
	{cifarBatches(""), []string{"test_batch"}, "batches.meta", 0, "labels", "label_names"},
	{[]string{"train"}, []string{"test"}, "meta", 0, "fine_labels", "fine_label_names"},
}

// cifarBatches returns data_batch_1 ... data_batch_5.
func cifarBatches(extension string) []string {
	var names []string
	for i := range 5 {
		names = append(names, "data_batch_"+strconv.Itoa(i+1)+extension)
	}
	return names
}

// files returns all files of a form.
func (f cifarForm) files() []string { return slices.Concat(f.train, f.test, []string{f.names}) }

// isCIFARDir reports whether a directory has the first training file of a form, and its test file
// or the names of its classes. Any other missing file is an error when it is opened.
func isCIFARDir(path string) bool {
	if !isDir(path) {
		return false
	}
	dir := onlyDir(path)
	return slices.ContainsFunc(cifarForms, func(f cifarForm) bool {
		return isRegular(filepath.Join(dir, f.train[0])) &&
			(isRegular(filepath.Join(dir, f.names)) || isRegular(filepath.Join(dir, f.test[0])))
	})
}

// readCIFARDir reads a directory with CIFAR's files.
func readCIFARDir(path string, _ Options) (arraySet, error) {
	dir, contents := onlyDir(path), map[string][]byte{}
	for _, form := range cifarForms {
		for _, name := range form.files() {
			file := filepath.Join(dir, name)
			if !isRegular(file) || contents[name] != nil {
				continue
			}
			content, err := readLimited(file)
			if err != nil {
				return arraySet{}, err
			}
			contents[name] = content
		}
	}
	return readCIFAR(path, contents)
}

// cifarMaxFile is the largest accepted size of a CIFAR file. The largest real one has 155 MB.
const cifarMaxFile = 1 << 28

// readLimited reads a file of at most cifarMaxFile bytes.
func readLimited(path string) ([]byte, error) {
	file, err := openFile(path)
	if err != nil {
		return nil, errors.Wrap(err, "datasets")
	}
	defer file.Close()
	content, err := io.ReadAll(io.LimitReader(file, cifarMaxFile+1))
	if err == nil && len(content) > cifarMaxFile {
		err = errors.Errorf("a file of CIFAR must have at most %d bytes", cifarMaxFile)
	}
	return content, errors.Wrapf(err, "datasets: %s", path)
}

func isTar(path string) bool {
	name := strings.ToLower(filepath.Base(path))
	return !isDir(path) && (strings.HasSuffix(name, ".tar.gz") || strings.HasSuffix(name, ".tgz") || strings.HasSuffix(name, ".tar"))
}

// readCIFARFile reads an archive as published for CIFAR.
func readCIFARFile(name string, _ Options) (arraySet, error) {
	file, err := openFile(name)
	if err != nil {
		return arraySet{}, errors.Wrap(err, "datasets")
	}
	defer file.Close()
	contents, err := readCIFARArchive(file)
	if err != nil {
		return arraySet{}, errors.WithMessagef(err, "datasets: %s", name)
	}
	return readCIFAR(name, contents)
}

// readCIFARArchive returns CIFAR's files in an archive, by their base names.
func readCIFARArchive(r io.Reader) (map[string][]byte, error) {
	unpacked, err := decompress(r)
	if err != nil {
		return nil, errors.Wrap(err, "offset 0: gzip header")
	}
	var wanted []string
	for _, form := range cifarForms {
		wanted = append(wanted, form.files()...)
	}
	archive, contents := tar.NewReader(unpacked), map[string][]byte{}
	for {
		header, err := archive.Next()
		if err == io.EOF {
			return contents, nil
		}
		if err != nil {
			return nil, errors.Wrap(err, "tar")
		}
		name := path.Base(header.Name)
		if header.Typeflag != tar.TypeReg || !slices.Contains(wanted, name) {
			continue
		}
		if contents[name] != nil {
			return nil, errors.Errorf("tar: must have one file called %s, got two", name)
		}
		if header.Size > cifarMaxFile {
			return nil, errors.Errorf("tar: %s must have at most %[3]d bytes, got %[2]d", header.Name, header.Size, cifarMaxFile)
		}
		if contents[name], err = readGrowing(archive, int(header.Size)); err != nil {
			return nil, errors.Wrapf(err, "tar: %s", header.Name)
		}
	}
}

// readCIFAR reads the contents of CIFAR's files.
func readCIFAR(name string, contents map[string][]byte) (arraySet, error) {
	for _, form := range cifarForms {
		if contents[form.train[0]] == nil || contents[form.names] == nil && contents[form.test[0]] == nil {
			continue
		}
		set := arraySet{hashes: map[string]string{}}
		for _, file := range form.files() {
			if contents[file] == nil {
				return arraySet{}, errors.Errorf("datasets: %s: must have the file %s next to %s", name, file, form.train[0])
			}
			set.hashes[file] = sha256Hex(contents[file])
		}
		var err error
		set.classNames, err = form.classNames(contents[form.names])
		if err != nil {
			return arraySet{}, errors.WithMessagef(err, "datasets: %s: %s", name, form.names)
		}
		for split, files := range [3][]string{Train: form.train, Test: form.test} {
			if files == nil {
				continue
			}
			part := &arrayPart{name: fmt.Sprintf("%s: %s images", name, Split(split)), channels: 3, height: cifarSide, width: cifarSide}
			for _, file := range files {
				if err := form.append(part, contents[file], len(set.classNames)); err != nil {
					return arraySet{}, errors.WithMessagef(err, "datasets: %s: %s", name, file)
				}
			}
			set.parts[split] = part
		}
		return set, nil
	}
	problem := fmt.Sprintf("must have CIFAR's files: %s or %s with %s or %s, or the binary files",
		cifarForms[2].train[0], cifarForms[3].train[0], cifarForms[2].names, cifarForms[3].names)
	if isTar(name) {
		problem += "; other archives are not read: unpack it and give the directory"
	}
	return arraySet{}, errors.Errorf("datasets: %s: %s", name, problem)
}

// classNames reads the file with the class names.
func (f cifarForm) classNames(content []byte) ([]string, error) {
	var names []string
	if f.labels > 0 {
		for line := range strings.Lines(string(content)) {
			if line = strings.TrimSpace(line); line != "" {
				names = append(names, line)
			}
		}
	} else {
		dict, err := unpickleDict(content)
		if err != nil {
			return nil, err
		}
		list, ok := dict[f.namesKey].(*pickleList)
		if !ok {
			return nil, errors.Errorf("must have a list %s", f.namesKey)
		}
		for _, item := range list.items {
			name, ok := item.(string)
			if !ok {
				return nil, errors.Errorf("%s: names must be strings, got %T", f.namesKey, item)
			}
			names = append(names, name)
		}
	}
	if len(names) < 1 || len(names) > 256 {
		return nil, errors.Errorf("must have 1 to 256 class names, got %d", len(names))
	}
	return names, nil
}

func unpickleDict(content []byte) (pickleDict, error) {
	value, err := unpickle(content)
	if err != nil {
		return nil, err
	}
	dict, ok := value.(pickleDict)
	if !ok {
		return nil, errors.Errorf("pickle: must be a dictionary, got %T", value)
	}
	return dict, nil
}

// append adds the images of one file to a part.
func (f cifarForm) append(part *arrayPart, content []byte, classes int) error {
	if f.labels == 0 {
		return f.appendPickled(part, content, classes)
	}
	record := f.labels + cifarImage
	if len(content) == 0 || len(content)%record != 0 {
		return errors.Errorf("size must be a multiple of %[2]d bytes (%[3]d of labels, %[4]d of image), got %[1]d", len(content), record, f.labels, cifarImage)
	}
	for at := 0; at < len(content); at += record {
		label := content[at+f.labels-1]
		if int(label) >= classes {
			return errors.Errorf("offset %d: label must be below %[3]d, got %[2]d", at+f.labels-1, label, classes)
		}
		part.labels = append(part.labels, int32(label))
		part.images = append(part.images, content[at+f.labels:at+record]...)
	}
	return nil
}

func (f cifarForm) appendPickled(part *arrayPart, content []byte, classes int) error {
	dict, err := unpickleDict(content)
	if err != nil {
		return err
	}
	data, ok := dict["data"].(*pickleArray)
	if !ok || len(data.shape) != 2 || data.shape[1] != cifarImage {
		return errors.Errorf("data must be an array [N %[2]d] of bytes, got %[1]T", dict["data"], cifarImage)
	}
	labels, ok := dict[f.labelKey].(*pickleList)
	if !ok || len(labels.items) != data.shape[0] {
		return errors.Errorf("%s must be a list of %[3]d labels, got %[2]T", f.labelKey, dict[f.labelKey], data.shape[0])
	}
	for i, item := range labels.items {
		label, ok := item.(int64)
		if !ok || label < 0 || label >= int64(classes) {
			return errors.Errorf("%s: label %d must be an integer from 0 to below %[5]d, got %[4]d (%[3]T)", f.labelKey, i, item, label, classes)
		}
		part.labels = append(part.labels, int32(label))
	}
	part.images = append(part.images, data.values...)
	return nil
}
