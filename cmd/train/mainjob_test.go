package main

import (
	"bytes"
	"context"
	"encoding/json"
	"image/png"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/graph"
)

// smallMainJob is the main job with a network and data that take a second, into a new folder.
func smallMainJob(t *testing.T) *mainJob {
	t.Helper()
	folder := t.TempDir()
	if err := writeLetters(filepath.Join(folder, "data"), 200, 60); err != nil {
		t.Fatal(err)
	}
	j := &mainJob{seed: 1, device: "cpu", letters: "glyphs", folder: filepath.Join(folder, "main"), dataFolder: filepath.Join(folder, "data")}
	for _, m := range []struct{ title, schedule string }{{"SGD", "constant:0.1"}, {"SGLD", "constant:0.2"}, {"pSGLD", "constant:0.002"}} {
		config := Config{
			Model: "mlp-10", Data: "notmnist", Sampler: strings.ToLower(m.title), Schedule: m.schedule, Batch: 20, Epochs: 6, Chains: 1,
		}
		if config.isSampler() {
			config.BurnIn, config.Samples = new(2), new(4)
		}
		j.methods = append(j.methods, method{m.title, config})
	}
	return j
}

func TestMainJob(t *testing.T) {
	j := smallMainJob(t)
	c, out, remarks, _ := testConsole()
	if err := j.run(context.Background(), c); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"run    accuracy", "on letters", "\nSGD ", "\nSGLD ", "\npSGLD ", "split R-hat", "temperature  requested  ",
		"Run folder: " + j.folder} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("results %q, want %q", out, want)
		}
	}
	if _, temperatures, _ := strings.Cut(out.String(), "temperature  requested"); strings.Contains(temperatures, "\nSGD ") {
		t.Errorf("%q: an optimizer has no temperature", temperatures)
	}
	if !strings.Contains(remarks.String(), "pSGLD  100%") {
		t.Errorf("remarks %q", remarks)
	}
	for _, name := range []string{"examples.png", "confidence.png", "coverage.png", "reliability.png", "weight.png"} {
		content := readFile(t, j.folder, name)
		if size, err := png.DecodeConfig(bytes.NewReader(content)); err != nil || size.Width < 300 || size.Height < 300 {
			t.Errorf("%s: %dx%d (%v)", name, size.Width, size.Height, err)
		}
	}
	page := string(readFile(t, j.folder, "report.html"))
	for _, want := range []string{"</html>", "data:image/svg&#43;xml;base64,", "pSGLD", "AUROC", "split R-hat", "Temperatures"} {
		if !strings.Contains(page, want) {
			t.Errorf("report.html of %d bytes has no %q", len(page), want)
		}
	}
	if table := string(readFile(t, j.folder, "table.md")); strings.Count(table, "\n") != 5 || !strings.Contains(table, "| pSGLD |") {
		t.Errorf("table.md: %q", table)
	}
	for method, samples := range map[string]int{"sgd": 1, "sgld": 4, "psgld": 4} {
		files, err := os.ReadDir(filepath.Join(j.folder, method, samplesFolder))
		if err != nil || len(files) != samples {
			t.Errorf("%s: %d samples, want %d (%v)", method, len(files), samples, err)
		}
	}
}

// What was done before a method failed is reported; the error is that method's.
func TestMainJobReportsWhatIsDone(t *testing.T) {
	j := smallMainJob(t)
	j.letters = "notmnist"
	j.methods[1].config.Schedule = "constant:1e10"
	c, out, remarks, _ := testConsole()
	err := j.run(context.Background(), c)
	var notFinite *graph.NotFinite
	if !errors.As(err, &notFinite) {
		t.Fatalf("error %v", err)
	}
	if !strings.Contains(out.String(), "\nSGD ") || strings.Contains(out.String(), "SGLD") {
		t.Errorf("results %q, want SGD's alone", out)
	}
	if !strings.Contains(remarks.String(), filepath.Join(j.folder, "sgld")+": 0 of 60 steps done, 0 samples kept.") {
		t.Errorf("remarks %q", remarks)
	}
	readFile(t, j.folder, "report.html")
}

func TestInterruptedBeforeTheFirstStep(t *testing.T) {
	j := smallMainJob(t)
	j.letters = "notmnist"
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	c, out, _, _ := testConsole()
	if err := j.run(ctx, c); !stopped(err) {
		t.Errorf("error %v, want that of the context", err)
	}
	if out.Len() > 0 {
		t.Errorf("results %q", out)
	}
}

func TestManifest(t *testing.T) {
	j := smallMainJob(t)
	config := j.methods[2].config
	config.Seed, config.Device, config.DataFolder = j.seed, j.device, j.dataFolder
	config, err := config.resolve()
	if err != nil {
		t.Fatal(err)
	}
	folder := j.folder
	c, _, _, _ := testConsole()
	if err := runFit(context.Background(), config, folder, false, c); err != nil {
		t.Fatal(err)
	}
	m, err := readManifest(folder)
	if err != nil {
		t.Fatal(err)
	}
	if m.DataSize != 200 || m.Steps != 60 || m.Parameters != 784*10+10+10*10+10 || m.Classes != 10 || m.Watched != "linear1.weight[3920]" {
		t.Errorf("manifest %+v", m)
	}
	if len(m.DataHashes) != 2 || len(m.DataHashes["train-images-idx3-ubyte"]) != 64 {
		t.Errorf("hashes of the data: %v", m.DataHashes)
	}
	if !strings.HasPrefix(m.Versions["go"], "go1.") || m.Revision == "" || !strings.HasPrefix(m.Device, "cpu (") {
		t.Errorf("versions %v, revision %q, device %q", m.Versions, m.Revision, m.Device)
	}
	if diff := cmp.Diff(config, m.Config); diff != "" {
		t.Error(diff)
	}
	lines := strings.Split(strings.TrimSpace(string(readFile(t, folder, metricsFile))), "\n")
	var last metricsLine
	if err := json.Unmarshal([]byte(lines[len(lines)-1]), &last); err != nil {
		t.Fatal(err)
	}
	if last.Step != 60 || last.Epoch != 6 || !(last.Loss > 0) || !(last.Accuracy > 0 && last.Accuracy <= 1) || last.Rate != 0.002 || last.Requested != 1 {
		t.Errorf("last metrics %+v", last)
	}
}

func readFile(t *testing.T, folder, name string) []byte {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(folder, name))
	if err != nil {
		t.Fatal(err)
	}
	if len(content) == 0 {
		t.Fatalf("%s is empty", name)
	}
	return content
}
