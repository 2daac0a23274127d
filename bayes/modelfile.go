package bayes

import (
	"crypto/sha256"
	"encoding/hex"
	"path/filepath"
	"strings"
	"sync"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/internal/file"
	"github.com/pollen-ml/pollen/onnx"
)

// isONNX reports whether a network is the path of an ONNX file.
func isONNX(network string) bool {
	return strings.EqualFold(filepath.Ext(network), ".onnx") && !strings.Contains(network, "\n")
}

// modelPart is one of the files of a model.
type modelPart struct {
	name    string // relative to the model's directory
	content []byte
}

// networkFile is an ONNX file that a Spec names. It is read when it is first needed, and once for
// all copies of the Spec.
type networkFile struct {
	path   string // of the model
	digest string // the sum that it must have; "" is any

	once  sync.Once
	model *onnx.Model
	sum   string // SHA-256 of the files
	files []modelPart
	err   error

	mu     sync.Mutex
	widths map[string]int // of features, by cut and shape of the images
	memory *featureMemory
}

// maxModel is the maximum size of an ONNX file and of its external data.
const maxModel = 1 << 31

func newNetworkFile(path, digest string) *networkFile {
	return &networkFile{path: path, digest: digest, widths: map[string]int{}, memory: &featureMemory{}}
}

// load reads the model, once: a later call returns the same model or the same error. If the model
// does not have the digest, the error is a DamagedError.
func (f *networkFile) load() (*onnx.Model, error) {
	f.once.Do(func() {
		f.err = f.read()
		if f.err == nil && f.digest != "" && f.sum != f.digest {
			f.err = errors.WithStack(&DamagedError{File: f.path, Cause: errors.Errorf("the SHA-256 of the model must be %s, got %s", f.digest, f.sum)})
		} else if f.err != nil && f.digest != "" {
			f.err = errors.WithStack(&DamagedError{File: f.path, Cause: f.err})
		}
	})
	return f.model, f.err
}

// read reads the model and the files of weights that it names, and hashes their contents in the
// order of reading.
func (f *networkFile) read() error {
	content, err := file.Read(f.path, maxModel)
	if err != nil {
		return errors.Wrap(err, "pollen: model")
	}
	f.files = []modelPart{{filepath.Base(f.path), content}}
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
			f.files = append(f.files, modelPart{name, external})
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

// ModelFile describes the ONNX file of a run. The run's directory has a copy.
type ModelFile struct {
	// Files are the names of the files in the directory rundir.ModelDir: the model, and the files
	// of its external weights.
	Files []string `json:"files"`
	// Digest is the SHA-256 of their contents, one after the other, in hexadecimal digits.
	Digest string `json:"digest"`
}
