package pretrained

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"path/filepath"
	"strconv"
	"strings"
	"sync"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/internal/file"
	"github.com/pollen-ml/pollen/internal/rundir"
	"github.com/pollen-ml/pollen/onnx"
)

// IsONNX reports whether a network is the path of an ONNX file.
func IsONNX(network string) bool {
	return strings.EqualFold(filepath.Ext(network), ".onnx") && !strings.Contains(network, "\n")
}

// File is an ONNX file. Its methods may be called by several goroutines.
type File struct {
	name   string // for errors
	path   string
	digest string // that the file must have; "" is any

	once  sync.Once
	model *onnx.Model
	sum   string // SHA-256 of the files
	files []part
	err   error

	mu     sync.Mutex
	widths map[string]int // of features, by cut and shape of the images
	memory memory
}

// part is one of the files of a model.
type part struct {
	name    string // relative to the model's directory
	content []byte
}

// Open returns the ONNX file with a path, without reading it.
func Open(path string) *File { return OpenCopy(path, path, "") }

// OpenCopy returns the copy of a file, in which CopyTo found the digest. Another digest, or a file
// that cannot be read, is a rundir.DamagedError. Other errors name the file as name.
func OpenCopy(name, path, digest string) *File {
	return &File{name: name, path: path, digest: digest, widths: map[string]int{}}
}

// Check reads the file, and returns an error if it cannot be used.
func (f *File) Check() error {
	_, err := f.load()
	return err
}

// maxModel is the maximum size of an ONNX file and of its external data.
const maxModel = 1 << 31

// load reads the model, once: a later call returns the same model or the same error.
func (f *File) load() (*onnx.Model, error) {
	f.once.Do(func() {
		f.err = f.read()
		if f.err == nil && f.digest != "" && f.sum != f.digest {
			f.err = errors.Errorf("the SHA-256 of the model must be %s, got %s", f.digest, f.sum)
		}
		if f.err != nil && f.digest != "" {
			f.err = errors.WithStack(&rundir.DamagedError{File: f.path, Cause: f.err})
		}
	})
	return f.model, f.err
}

// read reads the model and the files of weights that it names, and hashes their contents in the
// order of reading.
func (f *File) read() error {
	content, err := file.Read(f.path, maxModel)
	if err != nil {
		return errors.Wrap(err, "pollen: model")
	}
	f.files = []part{{filepath.Base(f.path), content}}
	hash := sha256.New()
	hash.Write(content)
	f.model, err = onnx.Read(content, func(name string) ([]byte, error) {
		// A model from a stranger must not make us read, and copy into the run, other files of the
		// machine.
		if !filepath.IsLocal(name) {
			return nil, errors.Errorf("must be a file below the model's directory, got %q", name)
		}
		external, err := file.Read(filepath.Join(filepath.Dir(f.path), name), maxModel)
		if err == nil {
			f.files = append(f.files, part{name, external})
			hash.Write(external)
		}
		return external, err
	})
	if err != nil {
		return errors.WithMessagef(err, "pollen: model %s", f.path)
	}
	f.sum = hex.EncodeToString(hash.Sum(nil))
	return nil
}

// CopyTo copies the file, and the files of its external weights, into a directory. It returns their
// names, the model's first, and the SHA-256 of their contents, one after the other, in hexadecimal
// digits.
func (f *File) CopyTo(dir string) (names []string, digest string, err error) {
	if err := f.Check(); err != nil {
		return nil, "", err
	}
	for _, part := range f.files {
		path := filepath.Join(dir, filepath.FromSlash(part.name))
		if err := file.MakeDir(filepath.Dir(path)); err != nil {
			return nil, "", errors.Wrap(err, "pollen: model")
		}
		if err := file.Write(path, part.content); err != nil {
			return nil, "", errors.Wrap(err, "pollen: model")
		}
		names = append(names, filepath.ToSlash(part.name))
	}
	return names, f.sum, nil
}

// ImageShape returns the shape of the network's images, with 0 for dimensions that it leaves open.
func (f *File) ImageShape() (channels, height, width int, err error) {
	model, err := f.load()
	if err != nil {
		return 0, 0, 0, err
	}
	channels, height, width, _ = inputShape(model)
	return channels, height, width, nil
}

// inputShape returns the shape of a model's images, with 0 for dimensions that it leaves open, and
// whether channels are the last axis.
func inputShape(m *onnx.Model) (channels, height, width int, last bool) {
	if len(m.Inputs) == 0 || len(m.Inputs[0].Shape) != 4 {
		return 0, 0, 0, false
	}
	// The file does not say which axis has the channels. Images have one to four, and are rarely so
	// few pixels wide.
	shape := m.Inputs[0].Shape
	areChannels := func(n int) bool { return n >= 1 && n <= 4 }
	if last = !areChannels(shape[1]) && areChannels(shape[3]); last {
		return shape[3], max(0, shape[1]), max(0, shape[2]), true
	}
	return max(0, shape[1]), max(0, shape[2]), max(0, shape[3]), false
}

// Resolve returns a cut as the name of a value of the network, and an input. If they are "", it
// returns what the file has: the value before its classifier, and the input that its metadata
// describe.
func (f *File) Resolve(cut, input string) (resolvedCut, resolvedInput string, err error) {
	model, err := f.load()
	if err != nil {
		return cut, input, err
	}
	if cut != "" {
		if cut, err = model.Value(cut); err != nil {
			return cut, input, errors.Errorf("pollen: cut: model %s: %v", f.name, err)
		}
	} else if cut, err = model.Features(); err != nil {
		return cut, input, errors.Errorf("pollen: model %s: %v; give the value to cut at with cut", f.name, err)
	}
	return cut, cmp.Or(input, inputOf(model.Metadata)), nil
}

// inputOf returns the input that a file's metadata describe, with the keys of ONNX's specification
// for images. Without these it is the input of ImageNet's networks.
func inputOf(metadata map[string]string) string {
	ranges := map[string]string{"Normalized_0_1": "none", "Normalized_1_1": "inception", "NominalRange_0_255": "bytes"}
	scaling := map[string]string{"none": "std=1", "inception": "mean=0.5,std=0.5", "bytes": "std=" + strconv.FormatFloat(1./255, 'g', -1, 64)}
	preset := ranges[metadata["Image.NominalPixelRange"]]
	if strings.HasPrefix(metadata["Image.BitmapPixelFormat"], "Bgr") {
		return cmp.Or(scaling[preset], "mean=0.485/0.456/0.406,std=0.229/0.224/0.225") + ",order=bgr"
	}
	return cmp.Or(preset, "imagenet")
}
