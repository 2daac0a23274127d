package datasets

import (
	"archive/zip"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"github.com/pkg/errors"
)

// npzLayouts are the names of the arrays of images and labels, by Split, in files of MedMNIST, of
// Keras and of scikit-learn. Any split may be absent. See plainPair for archives without splits.
var npzLayouts = [][3][2]string{
	{Train: {"train_images", "train_labels"}, Validation: {"val_images", "val_labels"}, Test: {"test_images", "test_labels"}},
	{Train: {"x_train", "y_train"}, Validation: {"x_val", "y_val"}, Test: {"x_test", "y_test"}},
	{Train: {"X_train", "y_train"}, Validation: {"X_val", "y_val"}, Test: {"X_test", "y_test"}},
}

// plainNames are names of the arrays of images and of labels in archives without splits, in upper
// or lower case. numpy.savez names arrays without names arr_0 and arr_1.
var plainNames = [2][]string{{"images", "x", "data", "arr_0"}, {"labels", "y", "targets", "target", "arr_1"}}

// plainPair returns the names of the arrays of images and labels of an archive without splits; both
// are "" if there is neither. Several arrays that could be either are an error, except that images
// and labels come before other names.
func plainPair(names []string) (pair [2]string, err error) {
	for i, known := range plainNames {
		if slices.Contains(names, known[0]) {
			pair[i] = known[0]
			continue
		}
		for _, name := range names {
			if !slices.Contains(known, strings.ToLower(name)) {
				continue
			}
			if pair[i] != "" {
				return pair, errors.Errorf("must have one array of %s, got %s and %s: call it %[1]s", known[0], pair[i], name)
			}
			pair[i] = name
		}
	}
	if (pair[0] == "arr_0" || pair[1] == "arr_1") && slices.Contains(names, "arr_2") {
		return pair, errors.Errorf("must have names for more than two arrays: save numpy.savez(file, x_train=..., y_train=..., x_test=..., y_test=...), got %s",
			quoted(names[:min(len(names), 8)]))
	}
	if pair[0] == "" && pair[1] != "" {
		pair[0] = plainNames[0][0] // which is missing
	}
	return pair, nil
}

func isNPZ(path string) bool {
	return !isDir(path) && strings.EqualFold(filepath.Ext(path), ".npz")
}

// readNPZFile reads an archive of arrays, as written by numpy.savez.
func readNPZFile(path string, options Options) (arraySet, error) {
	file, err := openFile(path)
	if err != nil {
		return arraySet{}, errors.Wrap(err, "datasets")
	}
	defer file.Close()
	hash := sha256.New()
	size, err := io.Copy(hash, file)
	if err != nil {
		return arraySet{}, errors.Wrapf(err, "datasets: %s", path)
	}
	set := arraySet{hashes: map[string]string{filepath.Base(path): hex.EncodeToString(hash.Sum(nil))}}
	if set.parts, err = readNPZ(path, file, size, options); err == nil {
		set.classNames, err = nameLabels(path, set.parts)
	}
	return set, err
}

// readNPZ reads the splits of an archive. Labels that are text have the numbers of their part's
// labelNames, see nameLabels.
func readNPZ(path string, r io.ReaderAt, size int64, options Options) (parts [3]*arrayPart, err error) {
	archive, err := zip.NewReader(r, size)
	if err != nil {
		return parts, errors.Wrapf(err, "datasets: %s: must be an archive of NumPy arrays (.npz)%s", path, notZip(r, size))
	}
	members := map[string]*zip.File{}
	var names []string
	for _, member := range archive.File {
		name := strings.TrimSuffix(member.Name, ".npy")
		if members[name] != nil {
			return parts, errors.Errorf("datasets: %s: must have one array called %s, got two", path, name)
		}
		members[name] = member
		names = append(names, name)
	}
	slices.Sort(names)
	layout, err := layoutOf(names, options)
	if err != nil {
		return parts, errors.WithMessagef(err, "datasets: %s", path)
	}
	for split, pair := range layout {
		images, labels := members[pair[0]], members[pair[1]]
		switch {
		case pair[0] == "" || images == nil && labels == nil:
		case images == nil:
			return parts, errors.Errorf("datasets: %s: must have the array %s for the labels %s", path, pair[0], pair[1])
		default:
			if parts[split], err = readNPZPart(path, images, labels, options); err != nil {
				return parts, err
			}
		}
	}
	return parts, nil
}

// notZip describes a file that is not an archive, for an error.
func notZip(r io.ReaderAt, size int64) string {
	start := make([]byte, min(size, pageStart))
	switch _, err := r.ReadAt(start, 0); {
	case size == 0:
		return ", got an empty file"
	case err != nil:
		return ""
	case bytes.HasPrefix(start, []byte("PK\x03\x04")):
		return ", got the beginning of one: copy it again, or download it"
	}
	return pageAdvice(start)
}

// layoutOf returns the first layout that the archive has an array of, or else its only pair of
// arrays, see plainPair. If the options accept images without labels, a single array may have any
// name.
func layoutOf(names []string, options Options) (layout [3][2]string, err error) {
	for i := range 2 { // an array of images, or else of labels
		for _, layout := range npzLayouts {
			if slices.ContainsFunc(layout[:], func(pair [2]string) bool { return pair[i] != "" && slices.Contains(names, pair[i]) }) {
				return layout, nil
			}
		}
	}
	if options.Unlabelled && len(names) == 1 && !slices.Contains(plainNames[1], strings.ToLower(names[0])) {
		return [3][2]string{Test: {names[0], ""}}, nil
	}
	pair, err := plainPair(names)
	if err == nil && pair[0] == "" {
		err = errors.Errorf("must have the arrays x and y, train_images and train_labels (and val_, test_), x_train and y_train (and x_val, x_test), "+
			"or images and labels, got %s", quoted(names[:min(len(names), 8)]))
	}
	return [3][2]string{Train: pair}, err
}

// readNPZPart reads the images of a split, see imagesOf, and its labels, [N] or [N 1]; labelsFile
// is nil if there are none.
func readNPZPart(path string, imagesFile, labelsFile *zip.File, options Options) (*arrayPart, error) {
	name := path + ": " + imagesFile.Name
	images, err := readNPZMember(name, imagesFile, options.imageUse(), options.limit(npyMaxSize))
	if err != nil {
		return nil, err
	}
	count := 0
	var labels npyArray
	if labelsFile != nil {
		labelsName := path + ": " + labelsFile.Name
		if labels, err = readNPZMember(labelsName, labelsFile, npyLabels, options.limit(npyMaxSize)); err != nil {
			return nil, err
		}
		count = labels.shape[0]
	}
	part, err := imagesOf(name, images, count, options)
	if err != nil {
		return nil, err
	}
	part.name = strings.TrimSuffix(part.name, ".npy")
	if labelsFile == nil {
		return part, nil
	}
	part.labels, err = labelsOf(path+": "+labelsFile.Name, labels, part.count())
	part.labelNames = labels.names
	return part, err
}

// readNPZMember reads one array. The archive's checksum is verified at the end of the data.
func readNPZMember(name string, member *zip.File, use npyUse, limit int64) (npyArray, error) {
	opened, err := member.Open()
	if err != nil {
		return npyArray{}, errors.Wrapf(err, "datasets: %s", name)
	}
	defer opened.Close()
	return readNPY(name, opened, limit, use) // readGrowing checks the memory
}
