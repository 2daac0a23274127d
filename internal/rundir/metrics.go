package rundir

import (
	"bytes"
	"encoding/json"
	"io"
	"path/filepath"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/internal/file"
)

// Metrics is a line of the journal of metrics: means over the steps of a window and over all
// chains.
type Metrics struct {
	// Step is the number of steps made by the end of the window, and Epoch the passes over the
	// data.
	Step  int     `json:"step"`
	Epoch float64 `json:"epoch"`
	// Loss is the mean negative log-likelihood of a minibatch's examples, in nats.
	Loss     float64 `json:"loss"`
	Accuracy float64 `json:"accuracy"`
	// Rate is the learning rate of the window's last step.
	Rate float64 `json:"rate"`
	// Temperature is the configurational temperature; nil if it is not measured.
	Temperature *float64 `json:"temperature,omitempty"`
	// ValidationLoss and ValidationAccuracy are the scores of the chains' states at the end of the
	// window on some of the validation images, averaged over the chains. ValidationNLL is computed
	// from the average of the samples so far or, before the first, of the chains. They are nil if
	// not measured.
	ValidationLoss     *float64 `json:"validationLoss,omitempty"`
	ValidationAccuracy *float64 `json:"validationAccuracy,omitempty"`
	ValidationNLL      *float64 `json:"validationNLL,omitempty"`
	// Requested is the temperature of the specification.
	Requested float64 `json:"requestedTemperature"`
	// Draws has statistics of the draws at the end of the window, a number for each chain, under
	// DrawPotential and the following names if the sampler has them. It is nil where no sample is
	// kept, and for samplers on minibatches.
	Draws map[string][]float64 `json:"draws,omitempty"`
}

// The names of Metrics.Draws. Package mcmc describes them.
const (
	DrawPotential     = "potential"
	DrawAcceptance    = "acceptance"
	DrawStepSize      = "stepSize"
	DrawLeapfrogSteps = "leapfrogSteps"
	DrawDiverged      = "diverged"
	DrawEnergyError   = "energyError"
	DrawEnergy        = "energy"
	DrawAccepted      = "accepted"
)

// endsEarly is the error of a journal of metrics without the lines up to the checkpoint, which are
// flushed before the checkpoint is written.
func endsEarly(last, steps int) error {
	return errors.Errorf("it ends at step %d, but %d steps were made", last, steps)
}

// ReadMetrics returns the lines of a run's journal of metrics. A line that another process has
// written in part is left out. The error's cause is os.ErrNotExist if there is no journal.
func ReadMetrics(dir string) (lines []Metrics, err error) {
	content, err := file.Read(filepath.Join(dir, MetricsFile), maxMetrics)
	if err != nil {
		return nil, errors.Wrap(err, "pollen: metrics")
	}
	for _, text := range bytes.Split(content, []byte("\n")) {
		var line Metrics
		if json.Unmarshal(text, &line) == nil {
			lines = append(lines, line)
		}
	}
	return lines, nil
}

// maxMetrics is the largest size of a journal of metrics.
const maxMetrics = 1 << 30

// lastMetrics returns the last whole line; the zero value if there is none. It reads only the end
// of the file, and skips a line that another process has written in part.
func lastMetrics(path string) (line Metrics, err error) {
	log, err := file.Open(path, 0)
	if err != nil {
		return line, errors.Wrap(err, "pollen: progress")
	}
	defer log.Close()
	info, err := log.Stat()
	if err != nil {
		return line, errors.Wrap(err, "pollen: progress")
	}
	// Most lines are short, but those with draws have numbers of each chain.
	const least, most = 1 << 12, 1 << 21 // twice the longest line of a journal
	for tail := int64(least); tail <= most; tail *= 2 {
		from := max(0, info.Size()-tail)
		content, err := io.ReadAll(io.NewSectionReader(log, from, tail))
		if err != nil {
			return line, errors.Wrap(err, "pollen: progress")
		}
		lines := bytes.Split(content, []byte("\n"))
		for i := len(lines) - 1; i >= 0; i-- {
			if json.Unmarshal(lines[i], &line) == nil {
				return line, nil
			}
		}
		if from == 0 {
			break
		}
	}
	return Metrics{}, nil
}
