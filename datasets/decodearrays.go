package datasets

import "github.com/pkg/errors"

// IsArrays reports whether DecodeArrays can decode a file with this name and content: the content
// begins like a .npy, .npz or IDX file, or the name ends in .csv.
func IsArrays(name string, content []byte) bool { return arrayReader(name, content) != nil }

// DecodeArrays decodes the images of a file of arrays that is in memory, as ReadImages does. CSV
// must not be compressed. It returns an error if IsArrays is false, or if the content exceeds the
// limits.
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
	return joined(parts, remarks.texts)
}
