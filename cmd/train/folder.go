package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/internal/file"
)

// A run's folder holds manifest.json, metrics.jsonl, samples/ and, beside them, what was made of these.
const (
	manifestFile  = "manifest.json"
	metricsFile   = "metrics.jsonl"
	samplesFolder = "samples"
)

// Manifest says what a run was: enough to repeat it.
type Manifest struct {
	Config     Config            `json:"config"`
	Device     string            `json:"device"`
	DataSize   int               `json:"dataSize"`
	Steps      int               `json:"steps"`
	Parameters int               `json:"parameters"`
	DataHashes map[string]string `json:"dataHashes"`
	Revision   string            `json:"revision"`
	Modified   bool              `json:"modified"` // files had changed since the revision, or nobody knows
	Versions   map[string]string `json:"versions"`
	Watched    string            `json:"watched"` // the weight whose trace is kept
	Mean       float64           `json:"mean"`    // of the pixels trained on
	Deviation  float64           `json:"deviation"`
	Classes    int               `json:"classes"`
}

func (m *Manifest) write(folder string) error {
	content, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		return errors.Wrap(err, "train: manifest")
	}
	return errors.Wrap(file.Write(filepath.Join(folder, manifestFile), append(content, '\n')), "train: manifest")
}

func readManifest(folder string) (*Manifest, error) {
	content, err := os.ReadFile(filepath.Join(folder, manifestFile))
	if err != nil {
		return nil, errors.Wrapf(err, "train: %s is not a run's folder", folder)
	}
	m := &Manifest{}
	return m, errors.Wrapf(json.Unmarshal(content, m), "train: %s", filepath.Join(folder, manifestFile))
}

// checkEmpty refuses a run's folder that exists and is not empty: runs do not mix.
func checkEmpty(folder string) error {
	entries, err := os.ReadDir(folder)
	if os.IsNotExist(err) {
		return nil
	}
	if err != nil {
		return errors.Wrap(err, "train: run folder")
	}
	if len(entries) > 0 {
		return errors.Errorf("train: run folder %s is not empty", folder)
	}
	return nil
}

// makeFolder makes a run's folder, if need be with those above it.
func makeFolder(folder string) error {
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return errors.Wrap(err, "train: run folder")
	}
	return checkEmpty(folder)
}

// sweep removes what a process that was killed had begun to write. The patterns are of names that earlier versions gave such files.
func sweep(folder string) error {
	for _, within := range []string{".", samplesFolder, "states", filepath.Dir(checkpointFile)} {
		if err := file.Sweep(filepath.Join(folder, within)); err != nil {
			return errors.Wrap(err, "train: run folder")
		}
	}
	for _, pattern := range []string{".metrics.jsonl*", ".manifest.json*", "samples/.chain*", "states/.chain*", "checkpoint/.state*"} {
		files, err := fs.Glob(os.DirFS(folder), pattern)
		if err != nil {
			return errors.Wrap(err, "train: run folder")
		}
		for _, name := range files {
			if err := os.Remove(filepath.Join(folder, name)); err != nil {
				return errors.Wrap(err, "train: run folder")
			}
		}
	}
	return nil
}

// newRunFolder is a folder's name that does not exist yet: runs/<name>-1, -2, ...
func newRunFolder(name string) (string, error) {
	for i := 1; ; i++ {
		folder := filepath.Join("runs", fmt.Sprintf("%s-%d", strings.ReplaceAll(name, "/", "-"), i))
		if _, err := os.Stat(folder); os.IsNotExist(err) {
			return folder, nil
		} else if err != nil {
			return "", errors.Wrap(err, "train: run folder")
		}
	}
}

// metricsLog is metrics.jsonl: a line for each window of steps.
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
	file, err := os.OpenFile(filepath.Join(folder, metricsFile), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, errors.Wrap(err, "train: metrics")
	}
	buffer := bufio.NewWriter(file)
	return &metricsLog{file: file, buffer: buffer, lines: json.NewEncoder(buffer)}, nil
}

func (l *metricsLog) add(line metricsLine) error {
	return errors.Wrap(l.lines.Encode(line), "train: metrics")
}

func (l *metricsLog) flush() error { return errors.Wrap(l.buffer.Flush(), "train: metrics") }

func (l *metricsLog) close() error {
	if err := l.flush(); err != nil {
		l.file.Close()
		return err
	}
	return errors.Wrap(l.file.Close(), "train: metrics")
}
