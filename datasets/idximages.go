package datasets

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/pkg/errors"
)

// locate returns the path of an IDX file in dir, under any form of its name, or "".
func locate(dir, name string) string {
	if name == "" {
		return ""
	}
	dotted := strings.Replace(name, "-idx", ".idx", 1) // as some archive programs write it
	for _, name := range []string{name + ".gz", name, dotted, dotted + ".gz"} {
		path := filepath.Join(dir, name)
		if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() {
			return path
		}
	}
	return ""
}

// isIDXFile reports whether a file that does not have the name of an image is an IDX file of
// images.
func isIDXFile(path string) bool {
	if !isRegular(path) || IsImage(path) {
		return false
	}
	file, err := openFile(path)
	if err != nil {
		return false
	}
	defer file.Close()
	return beginsLikeIDX(file)
}

// beginsLikeIDX reports whether data, which may be compressed, begin with the magic number of
// bytes.
func beginsLikeIDX(from io.Reader) bool {
	data, err := decompress(from)
	if err != nil {
		return false
	}
	magic, err := data.Peek(4)
	return err == nil && bytes.Equal(magic[:3], []byte{0, 0, idxUnsignedByte}) && magic[3] <= idxMaxRank
}

// readIDXPath reads the images of one IDX file.
func readIDXPath(path string, _ Options) (arraySet, error) {
	set := arraySet{hashes: map[string]string{}}
	part, err := readIDXImages(path, set.hashes)
	set.parts[Test] = part
	return set, err
}

// readIDXImages reads a file of images.
func readIDXImages(path string, hashes map[string]string) (*arrayPart, error) {
	part := &arrayPart{name: path}
	var err error
	part.images, err = readIDXFile(path, hashes, part.shape)
	return part, err
}

// shape sets the shape of images of the given dimensions.
func (p *arrayPart) shape(dimensions []int) error {
	p.channels = 1
	switch n := len(dimensions); n {
	case 4:
		p.channels = dimensions[1]
		fallthrough
	case 3:
		p.height, p.width = dimensions[n-2], dimensions[n-1]
		return nil
	}
	return errors.Errorf("dimensions must be [N H W] or [N C H W], got %v", dimensions)
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

func widened(labels []byte) []int32 {
	wide := make([]int32, len(labels))
	for i, label := range labels {
		wide[i] = int32(label)
	}
	return wide
}

// dimensionsError returns the error for wrong dimensions; a first dimension of 0 stands for any
// number.
func dimensionsError(got []int, want ...int) error {
	if want[0] == 0 {
		return errors.Errorf("dimensions must be [N %[2]d %[3]d], got %[1]v", got, want[1], want[2])
	}
	return errors.Errorf("dimensions must be %[2]v, got %[1]v", got, want)
}
