package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/cuda"
	"github.com/pollen-ml/pollen/cuda/emulator"
	"github.com/pollen-ml/pollen/internal/testenv"
	"github.com/pollen-ml/pollen/tensor"
)

// TestGPUWritesARecord runs the command on the emulated GPU, without peers.
func TestGPUWritesARecord(t *testing.T) {
	testenv.NeedsAll(t, "the emulated GPU measures a record")
	t.Setenv(cuda.DriverVariable, emulator.Build(t))
	path := filepath.Join(t.TempDir(), "record.json")
	c := command()
	c.SetArgs([]string{
		"gpu", "--rounds", "1", "--work", "steps,updates,calls", "--steps", "mlp-10:4", "--chains", "1,2", "--precisions", "fp32", "--updates", "1000",
		"--repetitions", "3", "--variants", "default,late+line,nowgmma",
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
		"step mlp-10 batch 4 sgld, 2 chains, fp32": 2, "psgld update of 1000 parameters": 1, "copy of 1000 floats": 1,
		"calls of step mlp-10 batch 4 sgld, 2 chains, fp32": 10,
	} {
		if cases[name] < least {
			t.Errorf("%d entries of %q, want %d: %v", cases[name], name, least, cases)
		}
	}
	late := r.entry("step mlp-10 batch 4 sgld, 1 chains, fp32", "pollen (late+line)")
	if late == nil || !(late.Ratio > 0) {
		t.Errorf("the variant is %+v", late)
	}
	step := r.entry("calls of step mlp-10 batch 4 sgld, 2 chains, fp32", "step")
	sum := r.entry("calls of step mlp-10 batch 4 sgld, 2 chains, fp32", "sum of the calls")
	line := r.entry("calls of step mlp-10 batch 4 sgld, 2 chains, fp32", "longest line of calls")
	if step == nil || sum == nil || line == nil || !(step.Rate > 0) || line.Seconds.Median > sum.Seconds.Median*(1+1e-9) {
		t.Errorf("the calls' totals are %+v, %+v, %+v", step, sum, line)
	}
	if !strings.Contains(r.Machine.GPU, "Emulated GPU") {
		t.Errorf("the record's GPU is %q", r.Machine.GPU)
	}
}

// TestGPULeavesOutPrecisions: precisions that an older GPU lacks are left out, and the others are
// timed.
func TestGPULeavesOutPrecisions(t *testing.T) {
	testenv.NeedsAll(t, "the emulated GPU measures a record")
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

// TestGPUIsResumed: after the GPU is lost the command ends, and a second one continues after the
// comparison that failed.
func TestGPUIsResumed(t *testing.T) {
	driver := emulator.Open(t, emulator.Options{})
	t.Setenv(cuda.DriverVariable, driver.Path)
	path := filepath.Join(t.TempDir(), "record.json")
	run := func() error {
		c := command()
		c.SetArgs([]string{
			"gpu", "--rounds", "1", "--work", "steps", "--steps", "mlp-10:4", "--chains", "1,2", "--precisions", "fp32", "--peers", "", "--json", path, "--resume",
		})
		return c.Execute()
	}
	const illegalAddress = 700
	driver.Fail("cuStreamSynchronize", 3, illegalAddress)
	err := run()
	var gone lost
	if !errors.As(err, &gone) || !strings.Contains(err.Error(), "ILLEGAL_ADDRESS") {
		t.Errorf("got %v, want the failure", err)
	}
	r := readRecord(t, path)
	if len(r.Entries) != 0 || len(r.Left) != 1 || len(r.Failed) != 1 || !strings.Contains(r.Failed[0].Case, "1 chains") || r.Begun != nil {
		t.Errorf("the record has %+v, and leaves out %v", r.Entries, r.Left)
	}
	for range 2 {
		if err := run(); err != nil {
			t.Fatal(err)
		}
		r = readRecord(t, path)
		if len(r.Entries) != 1 || !strings.Contains(r.Entries[0].Case, "2 chains") || len(r.Left) != 1 {
			t.Errorf("the record has %+v, and leaves out %v", r.Entries, r.Left)
		}
	}
}

// TestFailedComparisonLeavesOthers: after an error that does not lose the GPU the others are timed,
// and the command fails.
func TestFailedComparisonLeavesOthers(t *testing.T) {
	driver := emulator.Open(t, emulator.Options{})
	t.Setenv(cuda.DriverVariable, driver.Path)
	path := filepath.Join(t.TempDir(), "record.json")
	c := command()
	c.SetArgs([]string{
		"gpu", "--rounds", "1", "--work", "steps", "--steps", "mlp-10:4", "--chains", "1,2", "--precisions", "fp32", "--peers", "", "--json", path,
	})
	const invalidValue = 1
	driver.Fail("cuGraphInstantiateWithFlags", 1, invalidValue)
	if err := c.Execute(); err == nil || !strings.Contains(err.Error(), "cuGraphInstantiateWithFlags") {
		t.Errorf("got %v, want the failure", err)
	}
	if r := readRecord(t, path); len(r.Entries) != 1 || !strings.Contains(r.Entries[0].Case, "2 chains") || len(r.Failed) != 1 {
		t.Errorf("the record has %+v, and %+v failed", r.Entries, r.Failed)
	}
}

// TestKilledSideIsSkipped: the side that was being timed when the process ended is not started
// again.
func TestKilledSideIsSkipped(t *testing.T) {
	t.Setenv(cuda.DriverVariable, emulator.Build(t))
	path := filepath.Join(t.TempDir(), "record.json")
	installed, err := cuda.List()
	if err != nil {
		t.Fatal(err)
	}
	old := newRecord()
	old.Machine.GPU = fmt.Sprintf("%v, CUDA %s", installed.GPUs[0], installed.Version)
	old.Begun = &failure{Case: "step mlp-10 batch 4 sgld, 1 chains, fp32", Side: "pollen"}
	if err := old.save(path); err != nil {
		t.Fatal(err)
	}
	c := command()
	c.SetArgs([]string{
		"gpu", "--rounds", "1", "--work", "steps", "--steps", "mlp-10:4", "--chains", "1,2", "--precisions", "fp32", "--peers", "", "--json", path, "--resume",
	})
	if err := c.Execute(); err != nil {
		t.Fatal(err)
	}
	if r := readRecord(t, path); len(r.Entries) != 1 || len(r.Failed) != 1 || r.Failed[0].Error == "" || r.Begun != nil {
		t.Errorf("the record has %+v, and %+v failed", r.Entries, r.Failed)
	}
}

// TestPeersLastLines: the record has the last lines that a peer wrote before it ended.
func TestPeersLastLines(t *testing.T) {
	t.Setenv(cuda.DriverVariable, emulator.Build(t))
	dir := t.TempDir()
	path, python := filepath.Join(dir, "record.json"), filepath.Join(dir, "python")
	if err := os.WriteFile(python, []byte("#!/bin/sh\nread -r line; echo 'no such instruction' >&2; exit 1\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	c := command()
	c.SetArgs([]string{
		"gpu", "--rounds", "1", "--work", "steps", "--steps", "mlp-10:4", "--chains", "1", "--precisions", "bf16", "--peers", "jax",
		"--python", python, "--json", path,
	})
	if err := c.Execute(); err != nil {
		t.Fatal(err)
	}
	r := readRecord(t, path)
	if len(r.Failed) != 1 || r.Failed[0].Side != "jax" || len(r.Failed[0].Stderr) != 1 || r.Failed[0].Stderr[0] != "no such instruction" {
		t.Errorf("%+v failed", r.Failed)
	}
}

// TestStepsByTurns uses peers that answer at once: in each precision those with the longest
// preparation come last.
func TestStepsByTurns(t *testing.T) {
	testenv.NeedsAll(t, "steps that are timed")
	t.Setenv(cuda.DriverVariable, emulator.Build(t))
	dir := t.TempDir()
	path, python := filepath.Join(dir, "record.json"), filepath.Join(dir, "python")
	if err := os.WriteFile(python, []byte("#!/bin/sh\nwhile read -r line; do echo '{\"seconds\": 0.1}'; done\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	c := command()
	c.SetArgs([]string{
		"gpu", "--rounds", "1", "--work", "steps", "--steps", "mlp-10:4", "--chains", "1", "--precisions", "bf16,fp32", "--python", python, "--json", path,
	})
	if err := c.Execute(); err != nil {
		t.Fatal(err)
	}
	r := readRecord(t, path)
	got := ""
	for _, e := range r.Entries {
		got += " " + e.Case[len(e.Case)-4:] + " " + e.Side
	}
	want := ""
	for _, precision := range []string{"bf16", "fp32"} {
		for _, name := range []string{"pollen", "torch-graph", "jax", "torch-compile", "torch"} {
			want += " " + precision + " " + name
		}
	}
	if got != want {
		t.Errorf("the sides are %q, want %q", got, want)
	}
}

// TestSharesOfTheBudget: time that a work does not use goes to the others, and the last may use all
// of it.
func TestSharesOfTheBudget(t *testing.T) {
	for works, want := range map[string]time.Duration{
		"steps": time.Minute, "calls": time.Minute, "calls steps": 15 * time.Second, "updates convolutions calls steps": 10 * time.Second,
		"steps calls": 45 * time.Second,
	} {
		if got := share(strings.Fields(works), time.Minute); got != want {
			t.Errorf("the first of %s has %v of a minute, want %v", works, got, want)
		}
	}
}

// TestGPUPredicts: without a GPU the model predicts steps and updates, and the record states that
// nothing was measured.
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
	if _, ok := cases["calls of step mlp-10 batch 4 sgld, 64 chains, tf32"]; !ok {
		t.Errorf("no calls: %d cases", len(cases))
	}
}

// Convolutions are timed on normals: their results are not zero.
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
		l, err := newSingleLaunch(tensor.NewHost(1), s, i)
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

func TestParseNetwork(t *testing.T) {
	for text, want := range map[string]pretrained{
		"resnet18:32":   {network: "resnet18", batch: 32, clock: "wall"},
		"a:b/c.onnx:16": {network: "c", batch: 16, clock: "wall", file: "a:b/c.onnx", own: true},
	} {
		if p, err := parseNetwork(text); err != nil || p != want {
			t.Errorf("parseNetwork(%q) = %+v, %v, want %+v", text, p, err, want)
		}
	}
	for _, text := range []string{"resnet18", "resnet18:0", "resnet18:many", ":3", ""} {
		if p, err := parseNetwork(text); err == nil || !strings.Contains(err.Error(), "batch size") {
			t.Errorf("parseNetwork(%q) = %+v, %v, want an error", text, p, err)
		}
	}
}
