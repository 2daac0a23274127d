package samples

import (
	"bytes"
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
	Step       int     // the number of steps made
	Weight     float64 // in averages: the step size it was drawn with
	Parameters []Parameter
}

// Parameter is a parameter's value, in float32.
type Parameter struct {
	Name   string
	Shape  tensor.Shape
	Values []float32
}

// FromSession reads a chain's state out of a session. The sample's chain is its number in the run,
// which is part of its state.
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

// Validate refuses what no run can draw: a sample from an altered file, or a mistake.
func (s Sample) Validate() error {
	switch {
	case s.Chain < 0 || s.Step < 0:
		return errors.Errorf("chain %d at step %d, wants neither negative", s.Chain, s.Step)
	case !(s.Weight >= 0 && s.Weight < math.Inf(1)):
		return errors.Errorf("weight %v, wants a finite number that is not negative", s.Weight)
	case len(s.Parameters) == 0:
		return errors.New("no parameters")
	}
	for _, p := range s.Parameters {
		if err := p.Shape.Validate(); err != nil || p.Shape.Elements() != len(p.Values) {
			return errors.Errorf("%s of shape %v has %d values", p.Name, p.Shape, len(p.Values))
		}
		for i, v := range p.Values {
			if v-v != 0 {
				return errors.Errorf("%s has the value %v at %d, wants finite ones", p.Name, v, i)
			}
		}
	}
	return nil
}

// Put writes a sample's parameters into a chain of a session, whose program must have the same
// parameters. On an error nothing is written.
func (s Sample) Put(session *graph.Session, chain int) error {
	if err := s.Validate(); err != nil {
		return errors.Wrap(err, "samples: sample")
	}
	want := session.Program().Parameters()
	if len(want) != len(s.Parameters) {
		return errors.Errorf("samples: sample has %d parameters, the program %d", len(s.Parameters), len(want))
	}
	for i, p := range s.Parameters {
		if p.Name != want[i].Name || !p.Shape.Equal(want[i].Shape) {
			return errors.Errorf("samples: sample's parameter %d is %s %v, the program's %s %v", i, p.Name, p.Shape, want[i].Name, want[i].Shape)
		}
	}
	for _, p := range s.Parameters {
		if err := session.WriteFloats(p.Name, chain, p.Values); err != nil {
			return errors.Wrap(err, "samples: sample")
		}
	}
	return nil
}

// Store is a folder of samples, one safetensors file each, named by chain and step. Samples are
// written as they come, each file whole or not at all, so that a killed run keeps what it sampled;
// memory does not grow with their number.
type Store struct {
	dir string
}

// NewStore returns the bank of a folder, which Make creates.
func NewStore(dir string) *Store { return &Store{dir: dir} }

// Create creates the folder, which must hold no samples yet.
func (b *Store) Create() error {
	if err := os.MkdirAll(b.dir, 0o755); err != nil {
		return errors.Wrap(err, "samples: bank")
	}
	files, err := b.Files()
	if err != nil {
		return err
	}
	if len(files) > 0 {
		return errors.Errorf("samples: bank: %s holds %d samples already, wants a folder without", b.dir, len(files))
	}
	return nil
}

// RemoveAfter removes the samples of later steps, which a run resumed from that step draws again.
func (b *Store) RemoveAfter(step int) error {
	files, err := b.Files()
	if err != nil {
		return err
	}
	for _, file := range files {
		s, err := ReadSample(file)
		if err == nil && s.Step > step {
			err = errors.Wrap(os.Remove(file), "samples: bank")
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// OpenStore opens a folder of samples.
func OpenStore(dir string) (*Store, error) {
	b := &Store{dir: dir}
	files, err := b.Files()
	if err != nil {
		return nil, err
	}
	if len(files) == 0 {
		return nil, errors.Errorf("samples: bank: %s holds no samples (*%s)", dir, sampleSuffix)
	}
	return b, nil
}

const sampleSuffix = ".safetensors"

// Files are the samples' paths, by chain and then by step, which is also the order of their names
// and of os.ReadDir.
func (b *Store) Files() ([]string, error) {
	entries, err := os.ReadDir(b.dir)
	if err != nil {
		return nil, errors.Wrap(err, "samples: bank")
	}
	var files []string
	for _, entry := range entries {
		if strings.HasSuffix(entry.Name(), sampleSuffix) {
			files = append(files, filepath.Join(b.dir, entry.Name()))
		}
	}
	return files, nil
}

// writers is how many files Add writes at a time: most of the time is spent waiting for the disk.
const writers = 8

// File is a file of a bank, as it was written.
type File struct {
	Name  string // in the bank's folder
	Bytes int
	Sum   string // its checksum, which it also has inside
}

// Add writes samples, and returns when they are on the disk. After all have been tried, it returns
// the first error.
func (b *Store) Add(samples ...Sample) error {
	_, err := b.Write(samples...)
	return err
}

// Write is Add, and says what was written.
func (b *Store) Write(samples ...Sample) ([]File, error) {
	failures, files := make([]error, len(samples)), make([]File, len(samples))
	var writing sync.WaitGroup
	for first := range min(writers, len(samples)) {
		writing.Go(func() {
			for i := first; i < len(samples); i += writers {
				file, err := b.write(samples[i])
				files[i], failures[i] = file, errors.Wrap(err, "samples: bank")
			}
		})
	}
	writing.Wait()
	for _, err := range failures {
		if err != nil {
			return nil, err
		}
	}
	return files, nil
}

// The keys of a sample's metadata; a checksum is beside them.
const (
	chainKey  = "chain"
	stepKey   = "step"
	weightKey = "weight"
)

// FileName is the name of a sample's file.
func FileName(chain, step int) string {
	return fmt.Sprintf("chain%05d-step%09d%s", chain, step, sampleSuffix)
}

// ParseFileName is the chain and the step in the name of a sample's file, see FileName.
func ParseFileName(path string) (chain, step int, err error) {
	name := filepath.Base(path)
	if _, err := fmt.Sscanf(name, "chain%05d-step%09d"+sampleSuffix, &chain, &step); err != nil || FileName(chain, step) != name {
		return 0, 0, errors.Errorf("samples: %s: wants a name as %s", path, FileName(0, 0))
	}
	return chain, step, nil
}

func (b *Store) write(s Sample) (File, error) {
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
	if err := file.Serialize(&content); err != nil {
		return File{}, err
	}
	sum, err := checksum.Close(content.Bytes(), checksum.Header(content.Bytes()))
	if err != nil {
		return File{}, err
	}
	name := FileName(s.Chain, s.Step)
	return File{name, content.Len(), sum}, whole.Write(filepath.Join(b.dir, name), content.Bytes())
}

// ReadSample reads one file of a bank. The file must be as it was written; only files of earlier
// versions, which have no checksum, are taken as they are.
func ReadSample(path string) (Sample, error) {
	s, _, err := ReadWithChecksum(path)
	return s, errors.Wrapf(err, "samples: sample %s", path)
}

// ReadWithChecksum is ReadSample, and returns the file's checksum; "" where it has none. Its errors
// leave it to the caller to name the file.
func ReadWithChecksum(path string) (s Sample, sum string, err error) {
	content, err := os.ReadFile(path)
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
	file, err := safetensors.Parse(content)
	if err != nil {
		return Sample{}, "", err
	}
	if _, has := file.Metadata[checksum.Key]; has && sum == "" {
		return Sample{}, "", errors.New("its checksum was changed")
	}
	if s, err = sampleOf(file); err != nil {
		return Sample{}, "", err
	}
	return s, sum, nil
}

// sampleOf is the sample in a file.
func sampleOf(file *safetensors.File) (s Sample, err error) {
	for key := range file.Metadata {
		if !slices.Contains([]string{chainKey, stepKey, weightKey, checksum.Key}, key) {
			return Sample{}, errors.Errorf("metadata has a key %q, which no sample has", key)
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
			return Sample{}, errors.Errorf("tensor %s holds %s, wants F32", t.Name, t.DType)
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
