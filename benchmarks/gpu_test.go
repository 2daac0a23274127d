package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/pollen-ml/pollen/cuda"
	"github.com/pollen-ml/pollen/cuda/emulator"
)

// TestGPUWritesARecord runs the command on the emulated GPU, without peers.
func TestGPUWritesARecord(t *testing.T) {
	t.Setenv(cuda.DriverVariable, emulator.Build(t))
	path := filepath.Join(t.TempDir(), "record.json")
	c := command()
	c.SetArgs([]string{
		"gpu", "--rounds", "1", "--work", "steps,updates,launches", "--steps", "mlp-10:4", "--chains", "1,2", "--precisions", "fp32", "--updates", "1000",
		"--python", filepath.Join(t.TempDir(), "no python"), "--json", path,
	})
	if err := c.Execute(); err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var r record
	if err := json.Unmarshal(content, &r); err != nil {
		t.Fatal(err)
	}
	cases := map[string]int{}
	for _, e := range r.Entries {
		cases[e.Case]++
		if !(e.Seconds.Median > 0) || !(e.Rate >= 0) {
			t.Errorf("%+v", e)
		}
	}
	for name, least := range map[string]int{
		"step mlp-10 batch 4 sgld, 2 chains, fp32": 1, "psgld update of 1000 parameters": 1, "copy of 1000 floats": 1, "launches of mlp-10:4, 2 chains, fp32": 10,
	} {
		if cases[name] < least {
			t.Errorf("%d entries of %q, wants %d: %v", cases[name], name, least, cases)
		}
	}
	if !strings.Contains(r.Machine.GPU, "Emulated GPU") {
		t.Errorf("the record's GPU is %q", r.Machine.GPU)
	}
}

// TestSharesOfTheBudget: what a work leaves is for the others, and the last may take all of it.
func TestSharesOfTheBudget(t *testing.T) {
	for works, want := range map[string]time.Duration{
		"steps": time.Minute, "launches": time.Minute, "launches steps": 15 * time.Second, "updates convolutions launches steps": 10 * time.Second,
		"steps launches": 45 * time.Second,
	} {
		if got := share(strings.Fields(works), time.Minute); got != want {
			t.Errorf("the first of %s has %v of a minute, want %v", works, got, want)
		}
	}
}
