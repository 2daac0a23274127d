package pollen

import (
	"os"
	"path/filepath"
	"strconv"

	"github.com/maruel/safetensors"
	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/internal/file"
)

// checkpointFile holds all that the chains keep from step to step, as of the last sample or a later
// epoch: a run that was killed goes on from there bit for bit.
const checkpointFile = "checkpoint/state.safetensors"

// checkpointOf is the present state of all of a session's chains.
func checkpointOf(s *graph.Session) (file safetensors.File, err error) {
	file.Metadata = map[string]string{"steps": strconv.FormatUint(s.Steps(), 10)}
	for chain := range s.Chains() {
		state := make([]byte, s.ChainBytes())
		if err := s.Save(chain, state); err != nil {
			return file, err
		}
		file.Tensors = append(file.Tensors, safetensors.Tensor{
			Name: chainName(chain), DType: safetensors.U8, Shape: []uint64{uint64(len(state))}, Data: state,
		})
	}
	return file, nil
}

// writeCheckpoint writes a checkpoint, whole or not at all.
func writeCheckpoint(folder string, checkpoint safetensors.File) error {
	path := filepath.Join(folder, checkpointFile)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return errors.Wrap(err, "pollen: checkpoint")
	}
	pending, err := file.Create(path)
	if err != nil {
		return errors.Wrap(err, "pollen: checkpoint")
	}
	defer pending.Close()
	if err := checkpoint.Serialize(pending); err != nil {
		return errors.Wrap(err, "pollen: checkpoint")
	}
	return errors.Wrap(pending.Commit(), "pollen: checkpoint")
}

func chainName(chain int) string { return "chain" + strconv.Itoa(chain) }

// readCheckpoint puts a session back to the run's last checkpoint.
func readCheckpoint(folder string, s *graph.Session) error {
	path := filepath.Join(folder, checkpointFile)
	content, err := os.ReadFile(path)
	if err != nil {
		return errors.Wrap(err, "pollen: no checkpoint to resume from")
	}
	file, err := safetensors.Parse(content)
	if err != nil {
		return errors.Wrapf(err, "pollen: checkpoint %s", path)
	}
	steps, err := strconv.ParseUint(file.Metadata["steps"], 10, 64)
	if err != nil {
		return errors.Wrapf(err, "pollen: checkpoint %s: steps", path)
	}
	if len(file.Tensors) != s.Chains() {
		return errors.Errorf("pollen: checkpoint %s has %d chains, the run %d", path, len(file.Tensors), s.Chains())
	}
	for chain, t := range file.Tensors {
		if t.Name != chainName(chain) {
			return errors.Errorf("pollen: checkpoint %s: tensor %d is %q, wants %q", path, chain, t.Name, chainName(chain))
		}
		if err := s.Restore(chain, t.Data, steps); err != nil {
			return errors.Wrapf(err, "pollen: checkpoint %s", path)
		}
	}
	return nil
}
