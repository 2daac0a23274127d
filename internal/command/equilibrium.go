package command

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/pollen-ml/pollen"
	"github.com/pollen-ml/pollen/datasets"
	"github.com/pollen-ml/pollen/internal/comparison"
	"github.com/pollen-ml/pollen/tensor"
)

const equilibriumImages = 1000

// settled are the settings of a run whose chains are in equilibrium at T = 1 and agree in what they
// predict: steps with all data, of which there must be few, and a prior that is soon forgotten.
var equilibriumSettings = []struct{ name, value string }{
	{"method", "auto"}, {"prior", "fan-in:2"}, {"subset", strconv.Itoa(equilibriumImages)},
	{"chains", "2"}, {"epochs", "9600"}, {"burn-in", "500"}, {"samples", "100"},
}

// suggestEquilibrium says what it means for the scores that samplers are not in equilibrium, and the
// command that gets there on that device and these data, at its cost here.
func (j *mainJob) suggestEquilibrium(ctx context.Context, notInEquilibrium []string, train *datasets.Dataset, device tensor.Device, c *console) error {
	var spec pollen.Spec
	command := program(os.Executable()) + " fit"
	for _, s := range equilibriumSettings {
		if s.name == "subset" && train.Len() <= equilibriumImages {
			continue
		}
		if err := spec.Set(s.name, s.value); err != nil {
			return err
		}
		command += " --" + s.name + " " + s.value
	}
	if j.device.Name != "auto" {
		command += " --device " + j.device.Name
	}
	if j.dataDir != "" {
		command += " --data-folder " + j.dataDir
	}
	steps, step, err := comparison.Cost(ctx, spec, train, 40, c.now, nil, pollen.WithDevice(device))
	if err != nil {
		return err
	}
	cost := max(time.Minute, (step * time.Duration(steps)).Round(time.Minute))
	fmt.Fprintf(c.out, "\nNot in equilibrium: %s. Their scores are of chains on their way from where they began, not of the posterior;\n"+
		"what that predicts at T = 1, learnt from %d digits, takes some %.0f min here:\n  %s\n",
		strings.Join(notInEquilibrium, ", "), min(equilibriumImages, train.Len()), cost.Minutes(), command)
	return nil
}
