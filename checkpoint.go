package pollen

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"

	"github.com/maruel/safetensors"
	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/internal/checksum"
	"github.com/pollen-ml/pollen/internal/file"
)

// checkpointFile holds all that the chains keep from step to step, and all that was measured of
// them, as of the last sample or a later epoch: a run that was killed goes on from there bit for
// bit. olderCheckpoint is the one before, for when the newer one is damaged, which is then put
// aside.
const (
	checkpointFile  = "checkpoint/state.safetensors"
	olderCheckpoint = "checkpoint/previous.safetensors"
	asideCheckpoint = "checkpoint/damaged.safetensors"
)

// The keys of a checkpoint's metadata: how many steps were made, and which held-out images are
// watched, if any.
const (
	stepsKey   = "steps"
	watchedKey = "watched"
)

// checkpointOf is the present state of all chains, and what was measured.
func checkpointOf(t *training) (safetensors.File, error) {
	s := t.session
	made := safetensors.File{Metadata: map[string]string{
		stepsKey: strconv.FormatUint(s.Steps(), 10), checksum.Key: checksum.Blank,
	}}
	for chain := range s.Chains() {
		state := make([]byte, s.ChainBytes())
		if err := s.Save(chain, state); err != nil {
			return made, err
		}
		made.Tensors = append(made.Tensors, safetensors.Tensor{
			Name: chainName(chain), DType: safetensors.U8, Shape: []uint64{uint64(len(state))}, Data: state,
		})
	}
	made.Tensors = append(made.Tensors, t.measured.tensors()...)
	if probe := t.measured.probe; probe != nil {
		made.Metadata[watchedKey] = probe.images
	}
	return made, nil
}

// writeCheckpoint writes a checkpoint, whole or not at all, and keeps the one before. It leaves the
// folder as it is if another process writes there by now.
func (w *writer) writeCheckpoint(made safetensors.File) error {
	var content bytes.Buffer
	if err := made.Serialize(&content); err != nil {
		return errors.Wrap(err, "pollen: checkpoint")
	}
	if _, err := checksum.Close(content.Bytes(), checksum.Header(content.Bytes())); err != nil {
		return errors.Wrap(err, "pollen: checkpoint")
	}
	path := filepath.Join(w.dir, checkpointFile)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return errors.Wrap(err, "pollen: checkpoint")
	}
	pending, err := file.Create(path)
	if err != nil {
		return errors.Wrap(err, "pollen: checkpoint")
	}
	defer pending.Close()
	if _, err := pending.Write(content.Bytes()); err != nil {
		return errors.Wrap(err, "pollen: checkpoint")
	}
	// A process that is killed between the two leaves the older one alone, which is whole.
	if err := pending.CommitKeeping(filepath.Join(w.dir, olderCheckpoint), w.stillHeld); err != nil {
		return errors.Wrap(err, "pollen: checkpoint")
	}
	return nil
}

func chainName(chain int) string { return "chain" + strconv.Itoa(chain) }

// parsedCheckpoint is a checkpoint that was read and is whole.
type parsedCheckpoint struct {
	*safetensors.File
	steps uint64
}

// parseCheckpoint checks the text of a checkpoint.
func parseCheckpoint(content []byte, format int) (c parsedCheckpoint, err error) {
	if _, err := checksum.Check(content, checksum.Header(content)); err != nil && (errors.Cause(err) != checksum.ErrNone || format >= sealedFormat) {
		return c, err
	}
	if c.File, err = safetensors.Parse(content); err != nil {
		return c, err
	}
	c.steps, err = strconv.ParseUint(c.Metadata[stepsKey], 10, 64)
	return c, errors.Wrap(err, "steps")
}

// loadCheckpoint reads the newest checkpoint of a run that is whole. Those that are not are
// returned as problems; they are an error if no other is left.
func loadCheckpoint(dir string, format int) (c parsedCheckpoint, problems []*DamagedError, err error) {
	missing := 0
	for _, name := range []string{checkpointFile, olderCheckpoint} {
		path := filepath.Join(dir, name)
		content, err := os.ReadFile(path)
		if err == nil {
			c, err = parseCheckpoint(content, format)
		} else if os.IsNotExist(err) {
			missing++
			continue
		}
		if err == nil {
			return c, problems, nil
		}
		problems = append(problems, &DamagedError{path, errors.Wrap(err, "checkpoint")})
	}
	if missing == 2 {
		return c, problems, damaged(filepath.Join(dir, checkpointFile), errors.New("no checkpoint to resume from: there is no such file"))
	}
	return c, problems, errors.WithStack(problems[0])
}

// restore puts the training back to a checkpoint. A checkpoint of an earlier version has nothing of
// what was measured, which then covers the rest of the run: whole is false.
func (c parsedCheckpoint) restore(t *training) (whole bool, err error) {
	s, tensors := t.session, c.Tensors
	chains := 0
	for chains < len(tensors) && tensors[chains].DType == safetensors.U8 {
		chains++
	}
	if chains != s.Chains() {
		return false, errors.Errorf("it has %d chains, the run %d", chains, s.Chains())
	}
	for chain, state := range tensors[:chains] {
		if state.Name != chainName(chain) {
			return false, errors.Errorf("tensor %d is %q, wants %q", chain, state.Name, chainName(chain))
		}
		if err := s.Restore(chain, state.Data, c.steps); err != nil {
			return false, err
		}
	}
	if len(tensors) == chains {
		return false, nil
	}
	return true, t.measured.restore(tensors[chains:], c.Metadata[watchedKey], t.environment)
}

// checkpointSteps is how many steps the newest checkpoint says were made, by its head alone; 0 if
// that cannot be read.
func checkpointSteps(dir string) int {
	opened, err := os.Open(filepath.Join(dir, checkpointFile))
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
