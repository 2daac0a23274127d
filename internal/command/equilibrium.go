package command

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/pollen-ml/pollen/bayes"
	"github.com/pollen-ml/pollen/datasets"
	"github.com/pollen-ml/pollen/internal/comparison"
	"github.com/pollen-ml/pollen/internal/config"
	"github.com/pollen-ml/pollen/tensor"
)

const equilibriumImages = 1000

// equilibriumSettings are the settings of a run whose chains reach equilibrium at T = 1 and agree
// in their predictions: steps on all data, which must be few images, and a prior under which chains
// soon forget where they started.
var equilibriumSettings = []struct{ name, value string }{
	{"method", "auto"}, {"prior", "fan-in:2"}, {"subset", strconv.Itoa(equilibriumImages)},
	{"chains", "2"}, {"epochs", "9600"}, {"burn-in", "500"}, {"samples", "100"},
}

// suggestEquilibrium explains what it means for the scores that samplers are not in equilibrium,
// and prints a command that reaches equilibrium on this device and these data, with its estimated
// time.
func (j *mainJob) suggestEquilibrium(ctx context.Context, notInEquilibrium []string, train *datasets.Dataset, device tensor.Device, c *console) error {
	var spec bayes.Spec
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
	if j.device.Threads > 0 {
		command += fmt.Sprintf(" --threads %d", j.device.Threads)
	}
	if j.device.Precision != "" {
		command += " --precision " + j.device.Precision
	}
	if j.dataDir != "" {
		command += " --data-folder " + config.Quoted(j.dataDir)
	}
	steps, step, err := comparison.Cost(ctx, spec, train, 40, c.now, nil, bayes.WithDevice(device))
	if err != nil {
		return err
	}
	cost := max(time.Minute, (step * time.Duration(steps)).Round(time.Minute))
	fmt.Fprintf(c.out, "\nNot in equilibrium: %s. Their scores belong to chains on the way from their start points, not to the posterior.\n"+
		"Sampling the posterior of %d digits at T = 1 takes about %.0f min here:\n  %s\n",
		strings.Join(notInEquilibrium, ", "), min(equilibriumImages, train.Len()), cost.Minutes(), command)
	return nil
}
