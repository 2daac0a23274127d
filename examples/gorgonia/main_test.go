package main

import (
	"bytes"
	"context"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/pollen-ml/pollen/datasets"
)

// TestRun: a small network runs all three ways.
func TestRun(t *testing.T) {
	var out bytes.Buffer
	small := sizes{batch: 10, hidden: 20, filters: [3]int{4, 6, 8}, dropout: [4]float64{0.2, 0.2, 0.2, 0.55}}
	if err := run(context.Background(), &out, t.TempDir(), small, 3, 300); err != nil {
		t.Fatal(err)
	}
	if !regexp.MustCompile(`(?s)Gorgonia .* ms a step.*\nPollen .* ms a step.*\nBayesian .*[Aa]ccuracy`).MatchString(out.String()) {
		t.Errorf("got:\n%s", out.String())
	}
}

// TestSameCosts: without dropout both machines have the same costs.
func TestSameCosts(t *testing.T) {
	data, err := datasets.Open("mnist", datasets.Options{})
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := bothMachines(&out, filepath.Join(t.TempDir(), "time.png"), sizes{batch: 10, hidden: 20, filters: [3]int{4, 6, 8}}, data.Train, 3); err != nil {
		t.Fatal(err)
	}
	lines := regexp.MustCompile(`cost ([0-9.]+) \.\.\. ([0-9.]+)`).FindAllStringSubmatch(out.String(), -1)
	if len(lines) != 2 || lines[0][1] != lines[1][1] || lines[0][2] != lines[1][2] {
		t.Errorf("the machines' costs differ:\n%s", out.String())
	}
}
