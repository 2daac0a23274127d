package samples

import (
	"bytes"
	"cmp"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/maruel/safetensors"
	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/internal/checksum"
	whole "github.com/pollen-ml/pollen/internal/file"
	"github.com/pollen-ml/pollen/tensor"
)

// Sample is one state of one chain.
type Sample struct {
	Chain      int
	Step       int     // number of steps that the chain has made
	Weight     float64 // in averages: the step size with which it was drawn
	Parameters []Parameter
}

// Parameter is the value of one parameter, in float32.
type Parameter struct {
	Name   string
	Shape  tensor.Shape
	Values []float32
}

// FromSession reads the current state of a chain of a session. The sample's Chain is the chain's
// number in the run, from its header, which differs from the argument if the session runs only some
// of the run's chains. For the samplers of package mcmc, whose parameters may hold proposals, the
// method Current of mcmc.Chains reads the last draw.
func FromSession(s *graph.Session, chain int, weight float64) (Sample, error) {
	header, err := s.Header(chain)
	if err != nil {
		return Sample{}, errors.Wrap(err, "samples: sample")
	}
	sample := Sample{Chain: int(header[graph.HeaderChain]), Step: int(s.Steps()), Weight: weight}
	for _, t := range s.Program().Parameters() {
		p := Parameter{Name: t.Name, Shape: t.Shape, Values: make([]float32, t.Shape.Elements())}
		if err := s.ReadFloats(t.Name, chain, p.Values); err != nil {
			return Sample{}, errors.Wrap(err, "samples: sample")
		}
		sample.Parameters = append(sample.Parameters, p)
	}
	return sample, nil
}

// Validate returns an error if no run can have drawn the sample: it has no parameters, a negative
// chain or step, a weight that is negative or not finite, a value that is not finite, or values
// that do not match a shape.
func (s Sample) Validate() error {
	switch {
	case s.Chain < 0 || s.Step < 0:
		return errors.Errorf("chain and step must not be negative, got %d and %d", s.Chain, s.Step)
	case !(s.Weight >= 0 && s.Weight < math.Inf(1)):
		return errors.Errorf("weight must be finite and not negative, got %v", s.Weight)
	case len(s.Parameters) == 0:
		return errors.New("no parameters")
	}
	for _, p := range s.Parameters {
		if err := p.Shape.Validate(); err != nil || p.Shape.Elements() != len(p.Values) {
			return errors.Errorf("%s must have the values of shape %v, got %d", p.Name, p.Shape, len(p.Values))
		}
		for i, v := range p.Values {
			if v-v != 0 {
				return errors.Errorf("%s: value %d must be finite, got %v", p.Name, i, v)
			}
		}
	}
	return nil
}

// Put writes the sample's parameters into a chain of a session, whose program must have the same
// parameters. It writes nothing if it returns an error about the sample.
func (s Sample) Put(session *graph.Session, chain int) error {
	if err := s.Validate(); err != nil {
		return errors.Wrap(err, "samples: sample")
	}
	want := session.Program().Parameters()
	if len(want) != len(s.Parameters) {
		return errors.Errorf("samples: sample must have the %d parameters of the program, got %d", len(want), len(s.Parameters))
	}
	for i, p := range s.Parameters {
		if p.Name != want[i].Name || !p.Shape.Equal(want[i].Shape) {
			return errors.Errorf("samples: parameter %d of the sample must be %s %v, got %s %v", i, want[i].Name, want[i].Shape, p.Name, p.Shape)
		}
	}
	for _, p := range s.Parameters {
		if err := session.WriteFloats(p.Name, chain, p.Values); err != nil {
			return errors.Wrap(err, "samples: sample")
		}
	}
	return nil
}

// Store is a directory of samples, one safetensors file each, named by chain and step, for example
// chain00002-step000000400.safetensors. Samples are written as they are drawn, each file whole or
// not at all, so a killed run keeps what it has sampled. Memory does not grow with the number of
// samples.
type Store struct {
	dir string
}

// NewStore returns the store of a directory, which [Store.Create] creates.
func NewStore(dir string) *Store { return &Store{dir: dir} }

// Create creates the directory. It returns an error if the directory already contains samples.
func (st *Store) Create() error {
	if err := whole.MakeDir(st.dir); err != nil {
		return errors.Wrap(err, "samples: store")
	}
	files, err := st.Files()
	if err != nil {
		return err
	}
	if len(files) > 0 {
		return errors.Errorf("samples: store: %s must not contain samples, got %d", st.dir, len(files))
	}
	return nil
}

const sampleSuffix = ".safetensors"

// Files returns the paths of the samples, by chain and then by step, which is also the lexical
// order of their names.
func (st *Store) Files() ([]string, error) {
	entries, err := os.ReadDir(st.dir)
	if err != nil {
		return nil, errors.Wrap(err, "samples: store")
	}
	var files []string
	for _, entry := range entries {
		if strings.HasSuffix(entry.Name(), sampleSuffix) {
			files = append(files, filepath.Join(st.dir, entry.Name()))
		}
	}
	return files, nil
}

// writers is the number of files that Write writes concurrently: most of the time is spent waiting
// for the disk.
const writers = 8

// File describes a file of a store, as it was written.
type File struct {
	Name  string // in the store's directory
	Bytes int
	Sum   string // its checksum, which is also part of the file
}

// Add writes samples and returns when they are on disk. It tries all of them, then returns the
// first error.
func (st *Store) Add(samples ...Sample) error {
	_, err := st.Write(nil, samples...)
	return err
}

// Write is Add, and returns the files that it wrote. Before it writes a file it calls may, if it is
// not nil, from several goroutines, and does not write the file if that returns an error.
func (st *Store) Write(may func() error, samples ...Sample) ([]File, error) {
	failures, files := make([]error, len(samples)), make([]File, len(samples))
	var writing sync.WaitGroup
	for first := range min(writers, len(samples)) {
		writing.Go(func() {
			for i := first; i < len(samples); i += writers {
				file, err := st.write(samples[i], may)
				files[i], failures[i] = file, errors.Wrap(err, "samples: store")
			}
		})
	}
	writing.Wait()
	return files, cmp.Or(failures...)
}

// The keys of a sample's metadata, next to the checksum's.
const (
	chainKey  = "chain"
	stepKey   = "step"
	weightKey = "weight"
)

// FileName returns the name of a sample's file.
func FileName(chain, step int) string {
	return fmt.Sprintf("chain%05d-step%09d%s", chain, step, sampleSuffix)
}

// ParseFileName returns the chain and step in the name of a sample's file, the inverse of
// [FileName]. Directories in path are ignored.
func ParseFileName(path string) (chain, step int, err error) {
	name := filepath.Base(path)
	if _, err := fmt.Sscanf(name, "chain%05d-step%09d"+sampleSuffix, &chain, &step); err != nil || FileName(chain, step) != name {
		return 0, 0, errors.Errorf("samples: %s: name must be like %s", path, FileName(0, 0))
	}
	return chain, step, nil
}

// write writes a sample as a safetensors file, whose metadata have its chain, step, weight and
// checksum.
func (st *Store) write(s Sample, may func() error) (File, error) {
	if err := s.Validate(); err != nil {
		return File{}, errors.Wrap(err, "sample")
	}
	file := safetensors.File{Metadata: map[string]string{
		chainKey:     strconv.Itoa(s.Chain),
		stepKey:      strconv.Itoa(s.Step),
		weightKey:    strconv.FormatFloat(s.Weight, 'g', -1, 64),
		checksum.Key: checksum.Blank,
	}}
	for _, p := range s.Parameters {
		// A scalar's shape is an empty list, which a nil slice would not be.
		t := safetensors.Tensor{Name: p.Name, DType: safetensors.F32, Shape: make([]uint64, len(p.Shape)), Data: tensor.Bytes(p.Values)}
		for i, extent := range p.Shape {
			t.Shape[i] = uint64(extent)
		}
		file.Tensors = append(file.Tensors, t)
	}
	var content bytes.Buffer
	const header, each = 1024, 256 // bytes of the JSON, and of each parameter in it
	n := header
	for _, t := range file.Tensors {
		n += each + len(t.Data)
	}
	content.Grow(n)
	if err := file.Serialize(&content); err != nil {
		return File{}, err
	}
	sum, err := checksum.Fill(content.Bytes(), checksum.Header(content.Bytes()))
	if err != nil {
		return File{}, err
	}
	name := FileName(s.Chain, s.Step)
	return File{name, content.Len(), sum}, whole.WriteIf(filepath.Join(st.dir, name), content.Bytes(), may)
}

// ReadSample reads one file of a store. It returns an error if the file was changed after it was
// written, which its checksum shows, or has no checksum.
func ReadSample(path string) (Sample, error) {
	s, _, err := ReadWithChecksum(path)
	return s, errors.Wrapf(err, "samples: sample %s", path)
}

// ReadWithChecksum is ReadSample, and also returns the file's checksum. Its errors do not name the
// file.
func ReadWithChecksum(path string) (s Sample, sum string, err error) {
	content, err := checksum.ReadFile(path)
	var named *os.PathError
	if errors.As(err, &named) {
		err = named.Err
	}
	if err != nil {
		return Sample{}, "", errors.Wrap(err, "samples: sample")
	}
	s, sum, err = parseSample(content)
	return s, sum, errors.Wrap(err, "samples: sample")
}

func parseSample(content []byte) (s Sample, sum string, err error) {
	sum, err = checksum.Check(content, checksum.Header(content))
	if err != nil && errors.Cause(err) != checksum.ErrNone {
		return Sample{}, "", err
	}
	s, unlike := sampleOf(content)
	if unlike != nil { // tells more about a file of another format than that it has no checksum
		err = unlike
	}
	if err != nil {
		return Sample{}, "", err
	}
	return s, sum, nil
}

// sampleOf returns the sample in a file, whatever its checksum.
func sampleOf(content []byte) (s Sample, err error) {
	file, err := safetensors.Parse(content)
	if err != nil {
		return Sample{}, err
	}
	for key := range file.Metadata {
		if !slices.Contains([]string{chainKey, stepKey, weightKey, checksum.Key}, key) {
			return Sample{}, errors.Errorf("unknown metadata key %q", key)
		}
	}
	if s.Chain, err = strconv.Atoi(file.Metadata[chainKey]); err != nil {
		return Sample{}, errors.Wrap(err, "metadata chain")
	}
	if s.Step, err = strconv.Atoi(file.Metadata[stepKey]); err != nil {
		return Sample{}, errors.Wrap(err, "metadata step")
	}
	if s.Weight, err = strconv.ParseFloat(file.Metadata[weightKey], 64); err != nil {
		return Sample{}, errors.Wrap(err, "metadata weight")
	}
	for _, t := range file.Tensors {
		if t.DType != safetensors.F32 {
			return Sample{}, errors.Errorf("tensor %s must be F32, got %s", t.Name, t.DType)
		}
		p := Parameter{Name: t.Name, Values: make([]float32, len(t.Data)/4)}
		for _, extent := range t.Shape {
			p.Shape = append(p.Shape, int(extent))
		}
		copy(tensor.Bytes(p.Values), t.Data)
		s.Parameters = append(s.Parameters, p)
	}
	return s, s.Validate()
}
