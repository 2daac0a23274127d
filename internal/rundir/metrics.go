package rundir

import (
	"bytes"
	"encoding/json"
	"io"
	"os"
	"path/filepath"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/internal/journal"
)

// Metrics is a line of the journal of metrics: means over the steps of a window and over all chains.
type Metrics struct {
	Step        int      `json:"step"` // made by the end of the window
	Epoch       float64  `json:"epoch"`
	Loss        float64  `json:"loss"`
	Accuracy    float64  `json:"accuracy"`
	Rate        float64  `json:"rate"`                  // learning rate of the last step
	Temperature *float64 `json:"temperature,omitempty"` // configurational; nil if it is not measured
	Requested   float64  `json:"requestedTemperature"`
}

// cutMetrics removes the lines after a step and a torn one, and returns where the rest ends. Lines up
// to that step that were changed or are missing are an error, unless the run is to continue without
// damaged files: it then keeps the lines before them.
func (w *Writer) cutMetrics(steps int) (journal.Tail, error) {
	path := filepath.Join(w.dir, MetricsFile)
	var kept []json.RawMessage
	last := 0
	_, err := journal.Read(path, func(object []byte) error {
		var line Metrics
		if err := json.Unmarshal(object, &line); err != nil {
			return errors.Wrap(err, "pollen: metrics")
		}
		if line.Step <= steps {
			kept, last = append(kept, json.RawMessage(object)), line.Step
		}
		return nil
	})
	if os.IsNotExist(errors.Cause(err)) {
		err = nil
	}
	if err == nil && last < steps {
		err = endsEarly(last, steps)
	}
	if err != nil && last < steps { // otherwise what is damaged comes after
		if !w.options.WithoutDamaged {
			return journal.Tail{}, damaged(path, err)
		}
		w.options.Remark("continuing without the rest of " + path + ": " + err.Error())
	}
	tail, err := journal.Rewrite(path, func(add func(any) error) error {
		for _, object := range kept {
			if err := add(object); err != nil {
				return err
			}
		}
		return nil
	})
	return tail, errors.Wrap(err, "pollen: metrics")
}

func endsEarly(last, steps int) error {
	return errors.Errorf("it ends at step %d, but %d steps were made", last, steps)
}

// lastMetrics returns the last whole line; the zero value if there is none.
func lastMetrics(path string) (line Metrics, err error) {
	log, err := os.Open(path)
	if err != nil {
		return line, errors.Wrap(err, "pollen: progress")
	}
	defer log.Close()
	const tail = 4096 // bytes, more than a line has
	if info, err := log.Stat(); err == nil && info.Size() > tail {
		if _, err := log.Seek(-tail, io.SeekEnd); err != nil {
			return line, errors.Wrap(err, "pollen: progress")
		}
	}
	content, err := io.ReadAll(log)
	if err != nil {
		return line, errors.Wrap(err, "pollen: progress")
	}
	lines := bytes.Split(content, []byte("\n"))
	for i := len(lines) - 1; i >= 0; i-- {
		if json.Unmarshal(lines[i], &line) == nil {
			return line, nil
		}
	}
	return Metrics{}, nil
}
