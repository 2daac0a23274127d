package datasets

import (
	"crypto/sha256"
	"encoding/hex"
	"io"
	"path/filepath"
	"slices"

	"github.com/pkg/errors"
)

// idxNames are the names of MNIST's files by Split: images with three or four dimensions, and
// labels.
var idxNames = [3][2][]string{
	Train:      {{"train-images-idx3-ubyte", "train-images-idx4-ubyte"}, {"train-labels-idx1-ubyte"}},
	Validation: {{"val-images-idx3-ubyte", "val-images-idx4-ubyte"}, {"val-labels-idx1-ubyte"}},
	Test:       {{"t10k-images-idx3-ubyte", "t10k-images-idx4-ubyte"}, {"t10k-labels-idx1-ubyte"}},
}

// locateAny returns the path of the first of the named files, or "".
func locateAny(dir string, names []string) string {
	for _, name := range names {
		if path := locate(dir, file{name: name}); path != "" {
			return path
		}
	}
	return ""
}

func isIDXDir(path string) bool {
	return isDir(path) && slices.ContainsFunc(idxNames[:], func(names [2][]string) bool {
		return locateAny(onlyDir(path), names[0]) != ""
	})
}

// openIDX opens a directory with IDX files under MNIST's names, [N H W] or [N C H W] of any size,
// with any number of classes.
func openIDX(path string, _ Options) (*Splits, error) {
	var parts [3]*arrayPart
	dir, hashes := onlyDir(path), map[string]string{}
	for split, names := range idxNames {
		imagesPath, labelsPath := locateAny(dir, names[0]), locateAny(dir, names[1])
		if imagesPath == "" && labelsPath == "" {
			continue
		}
		if imagesPath == "" || labelsPath == "" {
			return nil, errors.Errorf("datasets: %s: must have both files %s and %s, got one", dir, names[0][0], names[1][0])
		}
		part := &arrayPart{channels: 1}
		count := 0
		var err error
		part.images, err = readIDXFile(imagesPath, hashes, func(got []int) error {
			switch len(got) {
			case 4:
				part.channels = got[1]
				fallthrough
			case 3:
				count, part.height, part.width = got[0], got[len(got)-2], got[len(got)-1]
				return nil
			}
			return errors.Errorf("dimensions must be [N H W] or [N C H W], got %v", got)
		})
		if err != nil {
			return nil, err
		}
		labels, err := readIDXFile(labelsPath, hashes, func(got []int) error {
			if len(got) != 1 || got[0] != count {
				return errors.WithMessagef(dimensionsError(got, count), "%d images", count)
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
		part.labels = widened(labels)
		parts[split] = part
	}
	return arraySplits(path, parts, nil, hashes)
}

// readIDXFile reads an IDX file and adds its hash to hashes.
func readIDXFile(path string, hashes map[string]string, check func(dimensions []int) error) ([]byte, error) {
	opened, err := openFile(path)
	if err != nil {
		return nil, errors.Wrap(err, "datasets")
	}
	defer opened.Close()
	hash := sha256.New()
	_, values, err := readIDX(path, io.TeeReader(opened, hash), idxMaxSize, check)
	hashes[filepath.Base(path)] = hex.EncodeToString(hash.Sum(nil))
	return values, err
}
