package export

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/maruel/safetensors"
	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/bayes"
	"github.com/pollen-ml/pollen/internal/file"
	"github.com/pollen-ml/pollen/tensor"
)

// Torch writes the samples of a run to one safetensors file, with PyTorch's names and layouts:
// convolutions [K C R R], linear layers [out in]. Each parameter has one more axis, the first, for
// the samples, so that torch.func.vmap computes all of them, and element i of each is a state_dict
// of sample i. The metadata are sample_weights, mean and std, which normalise pixels from 0 to 1,
// separated by blanks, and the run's network, classes (one a line), digest and output: "logits", or
// "log_concentrations" of a Dirichlet distribution for a distilled run.
func Torch(run *bayes.Run, path string) error {
	draws, err := run.Draws()
	if err != nil {
		return err
	}
	digest, err := draws.Digest()
	if err != nil {
		return err
	}
	m := run.Manifest()
	var weights []string
	var f safetensors.File
	for i := range draws.Len() {
		s, err := draws.Weights(i)
		if err != nil {
			return err
		}
		weights = append(weights, strconv.FormatFloat(s.Weight, 'g', -1, 64))
		for j, p := range s.Parameters {
			if i == 0 {
				shape := []uint64{uint64(draws.Len())}
				for _, extent := range p.Shape {
					shape = append(shape, uint64(extent))
				}
				f.Tensors = append(f.Tensors, safetensors.Tensor{
					Name: p.Name, DType: safetensors.F32, Shape: shape, Data: make([]byte, 0, 4*len(p.Values)*draws.Len()),
				})
			}
			f.Tensors[j].Data = append(f.Tensors[j].Data, tensor.Bytes(p.Values)...)
		}
	}
	output := "logits"
	if m.Teacher != nil {
		output = "log_concentrations"
	}
	f.Metadata = map[string]string{
		"sample_weights": strings.Join(weights, " "), "mean": strings.Trim(fmt.Sprint(m.Data.Mean), "[]"), "std": strings.Trim(fmt.Sprint(m.Data.Std), "[]"),
		"network": m.NetworkName(), "classes": strings.Join(m.Data.ClassNames, "\n"), "run_digest": digest,
		"output": output,
	}
	pending, err := file.Create(path)
	if err != nil {
		return errors.Wrap(err, "export: torch")
	}
	defer pending.Close()
	if err := f.Serialize(pending); err != nil {
		return errors.Wrap(err, "export: torch")
	}
	return errors.Wrap(pending.Commit(), "export: torch")
}
