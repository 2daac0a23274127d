package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/pollen-ml/pollen/cuda"
	"github.com/pollen-ml/pollen/cuda/emulator"
	"github.com/pollen-ml/pollen/tensor"
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
	r := readRecord(t, path)
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

// TestGPULeavesOutPrecisions that an older GPU lacks: the others are timed.
func TestGPULeavesOutPrecisions(t *testing.T) {
	driver := emulator.Open(t, emulator.Options{Capability: 75})
	t.Setenv(cuda.DriverVariable, driver.Path)
	path := filepath.Join(t.TempDir(), "record.json")
	c := command()
	c.SetArgs([]string{"gpu", "--rounds", "1", "--work", "steps", "--steps", "mlp-10:4", "--chains", "1", "--peers", "", "--json", path})
	if err := c.Execute(); err != nil {
		t.Fatal(err)
	}
	r := readRecord(t, path)
	if len(r.Entries) != 1 || !strings.Contains(r.Entries[0].Case, "fp32") || len(r.Left) != 2 {
		t.Errorf("the record has %+v, and leaves out %v", r.Entries, r.Left)
	}
}

// readRecord reads a record that a command has written.
func readRecord(t *testing.T, path string) (r record) {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(content, &r); err != nil {
		t.Fatal(err)
	}
	return r
}

// TestGPUGoesOn: after a comparison fails the others go on, and the command fails in the end.
func TestGPUGoesOn(t *testing.T) {
	driver := emulator.Open(t, emulator.Options{})
	t.Setenv(cuda.DriverVariable, driver.Path)
	path := filepath.Join(t.TempDir(), "record.json")
	c := command()
	c.SetArgs([]string{
		"gpu", "--rounds", "1", "--work", "steps", "--steps", "mlp-10:4", "--chains", "1,2", "--precisions", "fp32", "--peers", "", "--json", path,
	})
	const illegalAddress = 700
	driver.Fail("cuStreamSynchronize", 3, illegalAddress)
	if err := c.Execute(); err == nil || !strings.Contains(err.Error(), "ILLEGAL_ADDRESS") {
		t.Errorf("got %v, want the failure", err)
	}
	r := readRecord(t, path)
	if len(r.Entries) != 1 || !strings.Contains(r.Entries[0].Case, "2 chains") || len(r.Left) != 1 {
		t.Errorf("the record has %+v, and leaves out %v", r.Entries, r.Left)
	}
}

// TestStepsByTurns has peers that answer at once: those with the longest preparation come last, and
// late precisions later.
func TestStepsByTurns(t *testing.T) {
	t.Setenv(cuda.DriverVariable, emulator.Build(t))
	folder := t.TempDir()
	path, python := filepath.Join(folder, "record.json"), filepath.Join(folder, "python")
	if err := os.WriteFile(python, []byte("#!/bin/sh\nwhile read -r line; do echo '{\"seconds\": 0.1}'; done\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	c := command()
	c.SetArgs([]string{
		"gpu", "--rounds", "1", "--work", "steps", "--steps", "mlp-10:4", "--chains", "1", "--precisions", "fp32,bf16", "--python", python, "--json", path,
	})
	if err := c.Execute(); err != nil {
		t.Fatal(err)
	}
	r := readRecord(t, path)
	got := ""
	for _, e := range r.Entries {
		if e.Side == "pollen" {
			got += "; " + strings.TrimPrefix(e.Case, "step mlp-10 batch 4 sgld, 1 chains, ")
		} else {
			got += " " + e.Side
		}
	}
	if want := "; fp32 torch torch-graph; fp32 jax; bf16 torch torch-graph; fp32 torch-compile; bf16 jax; bf16 torch-compile"; got != want {
		t.Errorf("the sides are %q, want %q", got, want)
	}
}

// TestSharesOfTheBudget: time that a work leaves goes to the others, and the last may take all of
// it.
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

// TestGPUPredicts: without a GPU the model says what steps and updates take, and the record says
// that nothing was measured.
func TestGPUPredicts(t *testing.T) {
	t.Setenv(cuda.DriverVariable, filepath.Join(t.TempDir(), "none"))
	path := filepath.Join(t.TempDir(), "record.json")
	c := command()
	c.SetArgs([]string{"gpu", "--predict", "--steps", "mlp-10:4", "--chains", "1,64", "--precisions", "tf32", "--updates", "1000,52428800", "--json", path})
	if err := c.Execute(); err != nil {
		t.Fatal(err)
	}
	r := readRecord(t, path)
	if r.Predicted != cuda.H200.Name || r.Machine.GPU != "" {
		t.Errorf("the record is predicted for %q, measured on %q", r.Predicted, r.Machine.GPU)
	}
	cases := map[string]entry{}
	for _, e := range r.Entries {
		if !(e.Seconds.Median >= 0) || e.Seconds.Rounds != 0 || e.Model != cuda.H200.Name {
			t.Errorf("%+v", e)
		}
		cases[e.Case] = e
	}
	one, many := cases["step mlp-10 batch 4 sgld, 1 chains, tf32"], cases["step mlp-10 batch 4 sgld, 64 chains, tf32"]
	if !(one.Seconds.Median > 0) || !(many.Seconds.Median >= one.Seconds.Median) || !(many.Rate > 10*one.Rate) {
		t.Errorf("one chain %+v, 64 chains %+v", one, many)
	}
	small, large := cases["psgld update of 1000 parameters"], cases["psgld update of 52428800 parameters"]
	if !(small.Fraction > 0) || !(0.5 < large.Fraction && large.Fraction <= 1) {
		t.Errorf("updates of few parameters %+v, of many %+v", small, large)
	}
	if _, ok := cases["launches of step mlp-10 batch 4 sgld, 64 chains, tf32"]; !ok {
		t.Errorf("no launches: %d cases", len(cases))
	}
}

// Convolutions are timed on normals: their results are no zeros.
func TestConvolutionsAreFilled(t *testing.T) {
	s, err := training{"mnist-64-64-256", 2, "sgd"}.schedule(1)
	if err != nil {
		t.Fatal(err)
	}
	directions := 0
	for i := range s.Launches {
		if wideDirection(&s.Launches[i]) == "" {
			continue
		}
		directions++
		out := s.Launches[i].Arguments[0].Buffer
		l, err := newLone(tensor.NewHost(1), s, i)
		if err == nil {
			err = l.fill(&s.Launches[i])
		}
		if err == nil {
			_, err = l.run(1)
		}
		got := make([]byte, out.Bytes())
		if err == nil {
			err = l.runner.Read(out, 0, 0, got)
		}
		if zeros := bytes.Count(got, []byte{0, 0, 0, 0}); err != nil || zeros > out.Elements*6/10 { // a ReLU makes half of them
			t.Errorf("%s: %d zeros in %d numbers (%v)", s.Launches[i].Label, zeros, out.Elements, err)
		}
	}
	if directions != 3 {
		t.Errorf("%d directions, want 3", directions)
	}
}

// TestModels: --model names the model that predicts; without it the GPU in use has its own, and
// others the H200's.
func TestModels(t *testing.T) {
	for _, c := range []struct{ flag, gpu, want string }{
		{"h100", "", cuda.H100.Name}, {"h200", "cuda:0: NVIDIA H100 80GB HBM3, compute capability 9.0", cuda.H200.Name},
		{"", "cuda:0: NVIDIA H100 80GB HBM3, compute capability 9.0", cuda.H100.Name}, {"", "cuda:1: NVIDIA H200, compute capability 9.0", cuda.H200.Name},
		{"", "cuda:0: Emulated GPU, compute capability 9.0", cuda.H200.Name}, {"", "", cuda.H200.Name},
	} {
		r := &gpuRun{record: &record{Machine: machine{GPU: c.gpu}}, options: options{model: c.flag}}
		if m, err := r.model(); m.Name != c.want || err != nil {
			t.Errorf("%+v: got %s, %v", c, m.Name, err)
		}
	}
	c := command()
	c.SetArgs([]string{"gpu", "--predict", "--model", "b200"})
	if err := c.Execute(); err == nil || !strings.Contains(err.Error(), `--model must be h100 or h200, got "b200"`) {
		t.Errorf("got %v", err)
	}
}
