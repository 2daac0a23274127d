package pollen

import (
	"bufio"
	"encoding/json"
	"os"
	"path/filepath"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/internal/file"
)

// metricsLog is metrics.jsonl: one line for each window of steps.
type metricsLog struct {
	file   *os.File
	buffer *bufio.Writer
	lines  *json.Encoder
}

// metricsLine is one line of metrics.jsonl: means over the window's steps and all chains.
type metricsLine struct {
	Step        int      `json:"step"` // made by the end of the window
	Epoch       float64  `json:"epoch"`
	Loss        float64  `json:"loss"`
	Accuracy    float64  `json:"accuracy"`
	Rate        float64  `json:"rate"`
	Temperature *float64 `json:"temperature,omitempty"` // configurational, where there is one
	Requested   float64  `json:"requestedTemperature"`
}

func newMetricsLog(folder string) (*metricsLog, error) {
	log, err := os.OpenFile(filepath.Join(folder, metricsFile), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, errors.Wrap(err, "pollen: metrics")
	}
	buffer := bufio.NewWriter(log)
	return &metricsLog{file: log, buffer: buffer, lines: json.NewEncoder(buffer)}, nil
}

func (l *metricsLog) add(line metricsLine) error {
	return errors.Wrap(l.lines.Encode(line), "pollen: metrics")
}

func (l *metricsLog) flush() error { return errors.Wrap(l.buffer.Flush(), "pollen: metrics") }

func (l *metricsLog) close() error {
	if err := l.flush(); err != nil {
		l.file.Close()
		return err
	}
	return errors.Wrap(l.file.Close(), "pollen: metrics")
}

// cutMetrics drops the lines of metrics.jsonl after a step, and a truncated one.
func cutMetrics(folder string, steps uint64) error {
	path := filepath.Join(folder, metricsFile)
	log, err := os.Open(path)
	if err != nil {
		return errors.Wrap(err, "pollen: metrics")
	}
	defer log.Close()
	var kept []byte
	for lines := bufio.NewScanner(log); lines.Scan(); {
		var line metricsLine
		if json.Unmarshal(lines.Bytes(), &line) != nil || uint64(line.Step) > steps {
			break
		}
		kept = append(append(kept, lines.Bytes()...), '\n')
	}
	return errors.Wrap(file.Write(path, kept), "pollen: metrics")
}
