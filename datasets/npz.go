package datasets

import (
	"archive/zip"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"github.com/pkg/errors"
)

// npzLayouts are the names of the arrays of images and labels, by Split: those of MedMNIST, of
// Keras, and plain ones. Any split except Train may be absent.
var npzLayouts = [][3][2]string{
	{Train: {"train_images", "train_labels"}, Validation: {"val_images", "val_labels"}, Test: {"test_images", "test_labels"}},
	{Train: {"x_train", "y_train"}, Validation: {"x_val", "y_val"}, Test: {"x_test", "y_test"}},
	{Train: {"images", "labels"}},
}

func isNPZ(path string) bool {
	return !isDir(path) && strings.EqualFold(filepath.Ext(path), ".npz")
}

// openNPZ opens an archive of arrays, as written by numpy.savez.
func openNPZ(path string, _ Options) (*Splits, error) {
	file, err := openFile(path)
	if err != nil {
		return nil, errors.Wrap(err, "datasets")
	}
	defer file.Close()
	hash := sha256.New()
	size, err := io.Copy(hash, file)
	if err != nil {
		return nil, errors.Wrapf(err, "datasets: %s", path)
	}
	parts, err := readNPZ(path, file, size)
	if err != nil {
		return nil, err
	}
	return arraySplits(path, parts, nil, map[string]string{filepath.Base(path): hex.EncodeToString(hash.Sum(nil))})
}

// readNPZ reads the splits of an archive.
func readNPZ(path string, r io.ReaderAt, size int64) ([3]*arrayPart, error) {
	var parts [3]*arrayPart
	archive, err := zip.NewReader(r, size)
	if err != nil {
		return parts, errors.Wrapf(err, "datasets: %s: must be an archive of NumPy arrays (.npz)", path)
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
	for _, layout := range npzLayouts {
		if members[layout[Train][0]] == nil {
			continue
		}
		for split, pair := range layout {
			images, labels := members[pair[0]], members[pair[1]]
			if pair[0] == "" || images == nil && labels == nil {
				continue
			}
			if images == nil || labels == nil {
				return parts, errors.Errorf("datasets: %s: must have both arrays %s and %s, got one", path, pair[0], pair[1])
			}
			if parts[split], err = readNPZPart(path, images, labels); err != nil {
				return parts, err
			}
		}
		return parts, nil
	}
	slices.Sort(names)
	return parts, errors.Errorf("datasets: %s: must have the arrays train_images and train_labels (and val_, test_), "+
		"x_train and y_train (and x_test, y_test), or images and labels, got %s", path, quoted(names[:min(len(names), 8)]))
}

// readNPZPart reads the images, [N H W], [N H W C] or [N C H W], and the labels, [N] or [N 1], of a
// split.
func readNPZPart(path string, imagesFile, labelsFile *zip.File) (*arrayPart, error) {
	name := path + ": " + imagesFile.Name
	images, err := readNPZMember(name, imagesFile)
	if err != nil {
		return nil, err
	}
	shape := images.shape
	if images.bytes == nil || len(shape) < 3 {
		return nil, errors.Errorf("datasets: %s: must be unsigned bytes [N H W] or [N H W C], got dimensions %v", name, shape)
	}
	part := &arrayPart{images: images.bytes, channels: 1, height: shape[1], width: shape[2]}
	switch {
	case len(shape) == 3:
	case shape[3] <= 4:
		part.channels = shape[3]
		part.images = planar(images.bytes, part.channels, part.height, part.width)
	case shape[1] <= 4:
		part.channels, part.height, part.width = shape[1], shape[2], shape[3]
	default:
		return nil, errors.Errorf("datasets: %s: dimensions must be [N H W C] or [N C H W] with C up to 4, got %v", name, shape)
	}
	name = path + ": " + labelsFile.Name
	labels, err := readNPZMember(name, labelsFile)
	if err != nil {
		return nil, err
	}
	if len(labels.shape) > 2 || labels.shape[0] != shape[0] || len(labels.shape) == 2 && labels.shape[1] != 1 {
		return nil, errors.Errorf("datasets: %s: dimensions must be [%[3]d] or [%[3]d 1], one label for each image, got %[2]v",
			name, labels.shape, shape[0])
	}
	part.labels = make([]int32, shape[0])
	for i := range part.labels {
		value := int64(0)
		if labels.bytes != nil {
			value = int64(labels.bytes[i])
		} else {
			value = labels.wide[i]
		}
		if value < 0 || value >= maxClasses {
			return nil, errors.Errorf("datasets: %s: label %d must be 0 or more and below %[4]d, got %[3]d", name, i, value, maxClasses)
		}
		part.labels[i] = int32(value)
	}
	return part, nil
}

// readNPZMember reads one array. The archive's checksum is verified at the end of the data.
func readNPZMember(name string, member *zip.File) (npyArray, error) {
	limit := int64(npyMaxSize)
	if available := availableMemory(); available > 0 {
		limit = min(limit, available)
	}
	opened, err := member.Open()
	if err != nil {
		return npyArray{}, errors.Wrapf(err, "datasets: %s", name)
	}
	defer opened.Close()
	return readNPY(name, opened, limit)
}
