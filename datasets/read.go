package datasets

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"io"
	"os"
	"path/filepath"

	"github.com/pkg/errors"
)

// absentError is the error if a place lacks the files, so that the next place is tried. Any other
// error ends the search.
type absentError string

// Error returns the reason.
func (e absentError) Error() string { return string(e) }

// read reads a split from dir, or returns an absentError if its files are not there.
func (s source) read(dir string, split Split) (*Dataset, error) {
	wanted := s.files[split]
	imagesPath, labelsPath := locate(dir, wanted.images.name), locate(dir, wanted.labels.name)
	switch {
	case imagesPath != "" && labelsPath != "":
		return s.readPair(imagesPath, labelsPath, split)
	case imagesPath != "":
		return nil, errors.Errorf("datasets: %s: %s must have its labels, %s, next to it", s.name, imagesPath, wanted.labels.name)
	case labelsPath != "":
		return nil, errors.Errorf("datasets: %s: %s must have its images, %s, next to it", s.name, labelsPath, wanted.images.name)
	}
	if letters := locateLetters(dir, s.letterDirs[split]); letters != "" {
		return s.readLetters(letters)
	}
	if _, err := os.Stat(dir); err != nil {
		return nil, absentError("directory " + dir + ": does not exist")
	}
	return nil, absentError("directory " + dir + ": has no " + wanted.images.name)
}

// readPair reads a split from its two IDX files.
func (s source) readPair(imagesPath, labelsPath string, split Split) (*Dataset, error) {
	wanted := s.files[split]
	count := s.images[split]
	images, err := s.readFile(imagesPath, wanted.images, func(got []int) error {
		if len(got) != 3 || count > 0 && got[0] != count || got[1] != knownSide || got[2] != knownSide {
			return dimensionsError(got, count, knownSide, knownSide)
		}
		count = got[0]
		return nil
	})
	if err != nil {
		return nil, err
	}
	labels, err := s.readFile(labelsPath, wanted.labels, func(got []int) error {
		if len(got) != 1 || got[0] != count {
			return errors.WithMessagef(dimensionsError(got, count), "%d images", count)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	for i, label := range labels.values {
		if int(label) >= len(s.classNames) {
			const header = 8
			return nil, errors.Errorf("datasets: %s: offset %d: label %d must be below %[5]d, got %[4]d",
				labelsPath, header+i, i, label, len(s.classNames))
		}
	}
	dataset := s.dataset(images.values, labels.values)
	dataset.Place = filepath.Dir(imagesPath)
	dataset.Hashes = map[string]string{
		filepath.Base(imagesPath): images.hash,
		filepath.Base(labelsPath): labels.hash,
	}
	return dataset, nil
}

// fileContent is the content read from one file.
type fileContent struct {
	values []byte
	hash   string // SHA-256 of the file, compressed as it is
}

// readFile reads and verifies one IDX file.
func (s source) readFile(path string, wanted file, check func(dimensions []int) error) (fileContent, error) {
	opened, err := openFile(path)
	if err != nil {
		return fileContent{}, errors.Wrapf(err, "datasets: %s", s.name)
	}
	defer opened.Close()
	packed := sha256.New()
	dimensions, values, err := readIDX(path, io.TeeReader(opened, packed), idxMaxSize, check)
	if err != nil {
		return fileContent{}, err
	}
	hash := hex.EncodeToString(packed.Sum(nil))
	if content := contentHash(dimensions, values); content != wanted.content {
		if owner := ownerOf(content, hash); owner != "" && owner != s.name {
			return fileContent{}, absentError(path + ": belongs to " + owner)
		}
		if wanted.content != "" {
			return fileContent{}, errors.Errorf("datasets: %s: SHA-256 of the unpacked content must be %[3]s, got %[2]s: "+
				"the file is damaged or altered, remove it", path, content, wanted.content)
		}
	}
	return fileContent{values, hash}, nil
}

// contentHash returns the SHA-256 of an uncompressed IDX file of bytes.
func contentHash(dimensions []int, values []byte) string {
	header := []byte{0, 0, idxUnsignedByte, byte(len(dimensions))}
	for _, n := range dimensions {
		header = binary.BigEndian.AppendUint32(header, uint32(n))
	}
	hash := sha256.New()
	hash.Write(header)
	hash.Write(values)
	return hex.EncodeToString(hash.Sum(nil))
}
