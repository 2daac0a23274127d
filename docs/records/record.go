package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/diagnostics"
	"github.com/pollen-ml/pollen/evaluate"
	"github.com/pollen-ml/pollen/report"
)

// Record has a command, and its runs or its output.
type Record struct {
	Command  string   `json:"command"`
	Revision string   `json:"revision,omitempty"` // of the program that printed; a run's revision is in its manifest
	Printed  []string `json:"printed,omitempty"`  // the lines of the output
	In       string   `json:"in,omitempty"`       // name of the test data of the scores
	Out      string   `json:"out,omitempty"`      // name of the out-of-distribution data
	Runs     []Run    `json:"runs,omitempty"`
}

// Run is one run of a command.
type Run struct {
	Name        string              `json:"name"`
	Manifest    json.RawMessage     `json:"manifest"`
	Scores      map[string]float64  `json:"scores,omitempty"`
	Diagnostics *diagnostics.Report `json:"diagnostics,omitempty"` // without the trace; nil if the run had none
	Fidelity    *evaluate.Fidelity  `json:"fidelity,omitempty"`    // of a distilled run
}

func (r Record) write(name string) error {
	content, err := json.MarshalIndent(r, "", " ")
	if err != nil {
		return errors.Wrap(err, "records")
	}
	return errors.Wrap(os.WriteFile(filepath.Join("docs", "records", name+".json"), append(content, '\n'), 0o644), "records")
}

func read(path string, into any) error {
	content, err := os.ReadFile(path)
	if err != nil {
		return errors.Wrap(err, "read")
	}
	return errors.Wrap(json.Unmarshal(content, into), path)
}

// text formats a table as text.
func text(t *report.Table) (string, error) {
	var out strings.Builder
	err := t.WriteText(&out)
	return out.String(), err
}
