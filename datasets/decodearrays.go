package datasets

import (
	"bytes"

	"github.com/pkg/errors"
)

// IsArrays reports whether a file with a name and content is for DecodeArrays: it begins like a
// .npy, .npz or IDX file, or its name ends in .csv.
func IsArrays(name string, content []byte) bool { return arrayReader(name, content) != nil }

// DecodeArrays decodes the images of a file of arrays that is in memory, as ReadImages does. CSV
// must not be compressed. It returns an error if the content is not for DecodeArrays or has more
// than the limits.
func DecodeArrays(name string, content []byte, limits ArrayLimits, options Options) (*Dataset, error) {
	if err := options.check(); err != nil {
		return nil, err
	}
	read := arrayReader(name, content)
	if read == nil {
		return nil, errors.Errorf("datasets: %s: must be a .npy, .npz, .csv or IDX file", name)
	}
	options, remarks := options.recording()
	options.Unlabelled, options.limits = true, limits
	set, err := read(name, content, options)
	if err != nil {
		return nil, err
	}
	set.hashes = map[string]string{name: sha256Hex(content)}
	parts, err := set.appendImages(nil, name, options)
	if err != nil {
		return nil, err
	}
	return joined(parts, *remarks)
}

// arrayReader returns the function that reads arrays from their content, or nil if there are none.
func arrayReader(name string, content []byte) func(name string, content []byte, options Options) (arraySet, error) {
	_, isCSV := csvStem(name)
	zipped := bytes.HasPrefix(content, []byte("\x1f\x8b")) // a line end may be repeated many times
	switch {
	case bytes.HasPrefix(content, []byte("\x93NUMPY")):
		return func(name string, content []byte, options Options) (arraySet, error) {
			return readNPYImages(name, bytes.NewReader(content), options)
		}
	case bytes.HasPrefix(content, []byte("PK\x03\x04")):
		return func(name string, content []byte, options Options) (arraySet, error) {
			parts, err := readNPZ(name, bytes.NewReader(content), int64(len(content)), options)
			return arraySet{parts: parts}, err
		}
	case isCSV && !zipped:
		return func(name string, content []byte, options Options) (arraySet, error) {
			part, _, err := readCSV(name, bytes.NewReader(content), options)
			return arraySet{parts: [3]*arrayPart{Test: part}}, err
		}
	case beginsLikeIDX(bytes.NewReader(content)):
		return func(name string, content []byte, options Options) (arraySet, error) {
			part := &arrayPart{name: name}
			var err error
			_, part.images, err = readIDX(name, bytes.NewReader(content), options.limit(idxMaxSize), part.shape)
			return arraySet{parts: [3]*arrayPart{Test: part}}, err
		}
	}
	return nil
}
