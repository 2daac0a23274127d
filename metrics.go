package pollen

import (
	"bufio"
	"encoding/json"
	"os"
	"path/filepath"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/internal/journal"
)

// metricsLine is one line of the journal metrics.jsonl: means over a window's steps and all chains.
type metricsLine struct {
	Step        int      `json:"step"` // made by the end of the window
	Epoch       float64  `json:"epoch"`
	Loss        float64  `json:"loss"`
	Accuracy    float64  `json:"accuracy"`
	Rate        float64  `json:"rate"`
	Temperature *float64 `json:"temperature,omitempty"` // configurational, where there is one
	Requested   float64  `json:"requestedTemperature"`
}

// cutMetrics drops the lines of metrics.jsonl after a step, and a torn one, and returns where the
// rest ends. Lines up to that step that were changed or are missing are an error, unless the run is
// to go on without damaged files: it then keeps those before.
func (w *writer) cutMetrics(steps, format int) (journal.Tail, error) {
	path := filepath.Join(w.dir, metricsFile)
	var kept []json.RawMessage
	last := 0
	keep := func(object []byte) error {
		var line metricsLine
		if err := json.Unmarshal(object, &line); err != nil {
			return errors.Wrap(err, "pollen: metrics")
		}
		if line.Step <= steps {
			kept, last = append(kept, json.RawMessage(object)), line.Step
		}
		return nil
	}
	plain, err := hasPlainLines(path)
	switch {
	case err != nil && !os.IsNotExist(errors.Cause(err)):
		return journal.Tail{}, err
	case err == nil && plain && format < sealedFormat:
		err = readPlain(path, keep)
	case err == nil:
		_, err = journal.Read(path, keep)
	}
	if err == nil && last < steps && format >= sealedFormat {
		err = errors.Errorf("it ends at step %d, and %d steps were made", last, steps)
	}
	if err != nil {
		if last >= steps {
			err = nil // what is damaged comes after
		} else if !w.withoutDamaged {
			return journal.Tail{}, damaged(path, err)
		} else {
			w.remark("goes on without the rest of " + path + ": " + err.Error())
		}
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

// hasPlainLines reports whether a file's first line is not a journal's, as earlier versions wrote
// them.
func hasPlainLines(path string) (bool, error) {
	log, err := os.Open(path)
	if err != nil {
		return false, errors.Wrap(err, "pollen: metrics")
	}
	defer log.Close()
	lines := bufio.NewScanner(log)
	return lines.Scan() && !journal.IsSealed(lines.Bytes()), nil
}

// readPlain passes on the lines of a file of an earlier version, up to one that is torn.
func readPlain(path string, use func([]byte) error) error {
	log, err := os.Open(path)
	if err != nil {
		return errors.Wrap(err, "pollen: metrics")
	}
	defer log.Close()
	for lines := bufio.NewScanner(log); lines.Scan(); {
		if use(append([]byte(nil), lines.Bytes()...)) != nil {
			break
		}
	}
	return nil
}
