package rundir

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"

	"github.com/maruel/safetensors"
	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/internal/checksum"
	"github.com/pollen-ml/pollen/internal/file"
	"github.com/pollen-ml/pollen/tensor"
)

// Checkpoint has the complete state of the chains of a run, and of everything measured on them. A
// run that was killed continues from it bit for bit.
type Checkpoint struct {
	// Steps is the number of steps made so far.
	Steps int
	// HeldOut is the SHA-256 of the pixels of the held-out images that chains are watched on; ""
	// without any. A resumed run with other images must not continue the traces of these.
	HeldOut string
	// Chains are the states of the session's chains, as graph.Session.Save returns them: all chains
	// have the same length, and replicas of replica exchange count as chains.
	Chains [][]byte
	// Warm are the states of the chains' warm start while that is in progress, all of the same
	// length; nil before and after it.
	Warm [][]byte
	// Measured are traces and sums for the diagnostics, in the order in which they are written.
	Measured []Measurement
}

// Measurement is a named list of numbers.
type Measurement struct {
	Name   string
	Values []float64
}

// The keys of a checkpoint's metadata, which safetensors keeps in the header, as text. They are
// part of the format and must not change.
const (
	stepsKey   = "steps"
	heldOutKey = "watched"
)

func chainName(chain int) string { return "chain" + strconv.Itoa(chain) }

func warmName(chain int) string { return "warm" + strconv.Itoa(chain) }

// encode returns the checkpoint as a safetensors file with a checksum: chains as U8 tensors chain0,
// chain1, ..., states of a warm start as U8 tensors warm0, warm1, ..., and then each measurement as
// an F64 tensor. The checksum is computed over the file with a blank in its place, and is then
// filled in.
func (c Checkpoint) encode() ([]byte, error) {
	f := safetensors.File{Metadata: map[string]string{
		stepsKey: strconv.Itoa(c.Steps), checksum.Key: checksum.Blank,
	}}
	if c.HeldOut != "" {
		f.Metadata[heldOutKey] = c.HeldOut
	}
	for chain, state := range c.Chains {
		f.Tensors = append(f.Tensors, stateTensor(chainName(chain), state))
	}
	for chain, state := range c.Warm {
		f.Tensors = append(f.Tensors, stateTensor(warmName(chain), state))
	}
	for _, m := range c.Measured {
		f.Tensors = append(f.Tensors, safetensors.Tensor{
			Name: m.Name, DType: safetensors.F64, Shape: []uint64{uint64(len(m.Values))}, Data: tensor.Bytes(m.Values),
		})
	}
	var content bytes.Buffer
	content.Grow(c.bytes()) // growing would copy what may be most of the memory
	if err := f.Serialize(&content); err != nil {
		return nil, err
	}
	_, err := checksum.Fill(content.Bytes(), checksum.Header(content.Bytes()))
	return content.Bytes(), err
}

func stateTensor(name string, state []byte) safetensors.Tensor {
	return safetensors.Tensor{Name: name, DType: safetensors.U8, Shape: []uint64{uint64(len(state))}, Data: state}
}

// bytes returns an upper bound close to the size of the file.
func (c Checkpoint) bytes() int {
	const header, each = 1024, 256 // of the JSON, and for each tensor in it
	n := header + each*(len(c.Chains)+len(c.Warm)+len(c.Measured))
	for _, state := range c.Chains {
		n += len(state)
	}
	for _, state := range c.Warm {
		n += len(state)
	}
	for _, m := range c.Measured {
		n += 8 * len(m.Values)
	}
	return n
}

// decodeCheckpoint reads what encode wrote. The checksum comes first, so that nothing is parsed
// that was not written by encode.
func decodeCheckpoint(content []byte) (c Checkpoint, err error) {
	if _, err := checksum.Check(content, checksum.Header(content)); err != nil {
		return c, err
	}
	f, err := safetensors.Parse(content)
	if err != nil {
		return c, err
	}
	if c.Steps, err = strconv.Atoi(f.Metadata[stepsKey]); err != nil {
		return c, errors.Wrap(err, "steps")
	}
	if c.Steps < 0 {
		return c, errors.Errorf("steps must be at least 0, got %d", c.Steps)
	}
	c.HeldOut = f.Metadata[heldOutKey]
	for i, t := range f.Tensors {
		switch {
		case t.DType == safetensors.U8 && t.Name == chainName(i) && len(c.Warm) == 0:
			c.Chains = append(c.Chains, t.Data)
		case t.DType == safetensors.U8 && t.Name == warmName(len(c.Warm)):
			c.Warm = append(c.Warm, t.Data)
		case t.DType == safetensors.F64:
			values := make([]float64, len(t.Data)/8)
			copy(tensor.Bytes(values), t.Data)
			c.Measured = append(c.Measured, Measurement{t.Name, values})
		default:
			return c, errors.Errorf("tensor %s must be F64, got %s", t.Name, t.DType)
		}
	}
	return c, nil
}

// readCheckpoint reads the newest checkpoint that is whole. It returns the damaged ones before it
// as problems, which are an error if no other is left. One missing file is no problem: a run has no
// older checkpoint at first, and no newer one if its process was killed between the two renames of
// writeCheckpoint.
func readCheckpoint(dir string) (c Checkpoint, problems []*DamagedError, err error) {
	missing := 0
	for _, name := range []string{CheckpointFile, OlderCheckpoint} {
		path := filepath.Join(dir, name)
		content, err := checksum.ReadFile(path)
		if err == nil {
			c, err = decodeCheckpoint(content)
		} else if os.IsNotExist(errors.Cause(err)) {
			missing++
			continue
		}
		if err == nil {
			return c, problems, nil
		}
		problems = append(problems, &DamagedError{path, errors.Wrap(err, "checkpoint")})
	}
	if missing == 2 {
		return c, problems, damaged(filepath.Join(dir, CheckpointFile), errors.New("no checkpoint to resume from: there is no such file"))
	}
	return c, problems, errors.WithStack(problems[0])
}

// writeFirst writes the checkpoint at step 0 that Options.KeepFirst keeps.
func (w *Writer) writeFirst(c Checkpoint) error {
	content, err := c.encode()
	if err != nil {
		return errors.Wrap(err, "pollen: checkpoint")
	}
	path := filepath.Join(w.dir, FirstCheckpoint)
	if err := file.MakeDir(filepath.Dir(path)); err != nil {
		return errors.Wrap(err, "pollen: checkpoint")
	}
	return errors.Wrap(file.WriteIf(path, content, w.Check), "pollen: checkpoint")
}

// First reads the checkpoint at step 0 that Options.KeepFirst keeps. The error is DamagedError if
// it is missing or was changed.
func (w *Writer) First() (c Checkpoint, err error) {
	path := filepath.Join(w.dir, FirstCheckpoint)
	content, err := checksum.ReadFile(path)
	if err == nil {
		c, err = decodeCheckpoint(content)
	}
	if err == nil && c.Steps != 0 {
		err = errors.Errorf("steps must be 0, got %d", c.Steps)
	}
	if err != nil {
		return c, damaged(path, errors.WithMessage(err, "checkpoint"))
	}
	return c, nil
}

// Last reads the newest checkpoint that is whole. The caller has called Wait.
func (w *Writer) Last() (Checkpoint, error) {
	c, _, err := readCheckpoint(w.dir)
	return c, err
}

// checkpointSteps returns how many steps were made by the newest checkpoint, from its header only,
// since states may be large; 0 if that cannot be read.
func checkpointSteps(dir string) int {
	opened, err := file.Open(filepath.Join(dir, CheckpointFile), 0)
	if err != nil {
		return 0
	}
	defer opened.Close()
	metadata, err := checksum.Metadata(opened)
	if err != nil {
		return 0
	}
	steps, err := strconv.Atoi(metadata[stepsKey])
	if err != nil {
		return 0
	}
	return steps
}

// ReadMeasurement returns a measurement of the newest checkpoint, without reading the states, which
// may be large; nil if it cannot be read.
func ReadMeasurement(dir, name string) []float64 {
	opened, err := file.Open(filepath.Join(dir, CheckpointFile), 0)
	if err != nil {
		return nil
	}
	defer opened.Close()
	const limit = 1 << 24
	content, err := checksum.Tensor(opened, name, limit)
	if err != nil {
		return nil
	}
	values := make([]float64, len(content)/8)
	copy(tensor.Bytes(values), content)
	return values
}
