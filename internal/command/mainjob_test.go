package command

import (
	"bytes"
	"context"
	"image/png"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/pkg/errors"
	"github.com/spf13/pflag"

	"github.com/pollen-ml/pollen/bayes"
	"github.com/pollen-ml/pollen/devices"
	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/internal/comparison"
	"github.com/pollen-ml/pollen/internal/letters"
	"github.com/pollen-ml/pollen/optimizers"
)

// smallMainJob returns the main job with a network and data that take a second, and a new
// directory.
func smallMainJob(t *testing.T) *mainJob {
	t.Helper()
	dir := t.TempDir()
	if err := letters.Write(filepath.Join(dir, "data"), 200, 60); err != nil {
		t.Fatal(err)
	}
	j := &mainJob{
		seed: 1, data: "notmnist", letters: "glyphs", dir: filepath.Join(dir, "main"), dataDir: filepath.Join(dir, "data"),
		device: deviceFlags{devices.Options{Name: "cpu", Threads: 1}},
	}
	for _, m := range []struct{ title, schedule string }{{"SGD", "constant:0.1"}, {"SGLD", "constant:0.2"}, {"pSGLD", "constant:0.002"}} {
		spec := bayes.Spec{Network: "mlp-10", Batch: 20, Epochs: 6}
		for name, text := range map[string]string{"method": strings.ToLower(m.title), "schedule": m.schedule} {
			if err := spec.Set(name, text); err != nil {
				t.Fatal(err)
			}
		}
		if !bayes.IsOptimizer(spec.Method) {
			spec.BurnIn, spec.Samples = new(2), 4
		}
		j.methods = append(j.methods, comparison.Entry{Title: m.title, Spec: spec})
	}
	return j
}

func TestMainJob(t *testing.T) {
	j := smallMainJob(t)
	c, out, remarks, _ := testConsole()
	if err := j.run(context.Background(), nil, c); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"score ", "confidence on glyphs", "\nSGD ", "\nSGLD ", "\npSGLD ", "split R-hat", "temperature  requested  ",
		"Run directory: " + j.dir, "\nNot in equilibrium: SGLD, pSGLD. Their scores "} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("results %q, want %q", out, want)
		}
	}
	if advice := regexp.MustCompile(`posterior of 200 digits at T = 1 takes about [1-9]\d* min here:\n  pollen fit .*\n$`); !advice.MatchString(out.String()) {
		t.Errorf("results %q, want %v", out, advice)
	}
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	command, _ := strings.CutPrefix(lines[len(lines)-1], "  pollen fit ")
	if !strings.HasSuffix(command, " --device cpu --threads 1 --data-folder "+j.dataDir) {
		t.Errorf("the last line is %q", lines[len(lines)-1])
	}
	estimate, _, said, _ := testConsole()
	words := append(append([]string{"fit"}, strings.Fields(command)...), "--data", j.data, "--estimate")
	if code := run(words, estimate); code != 0 {
		t.Errorf("what it says to run exits with %d: %s", code, said)
	}
	if _, temperatures, _ := strings.Cut(out.String(), "temperature  requested"); strings.Contains(temperatures, "\nSGD ") {
		t.Errorf("%q: an optimizer has no temperature", temperatures)
	}
	if !strings.Contains(remarks.String(), "pSGLD  100%") {
		t.Errorf("remarks %q", remarks)
	}
	for _, name := range []string{"examples.png", "confidence.png", "coverage.png", "reliability.png", "weight.png"} {
		content := readFile(t, j.dir, name)
		if size, err := png.DecodeConfig(bytes.NewReader(content)); err != nil || size.Width < 300 || size.Height < 300 {
			t.Errorf("%s: %dx%d (%v)", name, size.Width, size.Height, err)
		}
	}
	page := string(readFile(t, j.dir, "report.html"))
	for _, want := range []string{"</html>", "data:image/svg&#43;xml;base64,", "pSGLD", "AUROC", "split R-hat", "heating by minibatch noise that"} {
		if !strings.Contains(page, want) {
			t.Errorf("report.html of %d bytes has no %q", len(page), want)
		}
	}
	if table := string(readFile(t, j.dir, "table.md")); !strings.Contains(table, "pSGLD |") || !strings.Contains(table, "| AUROC ") {
		t.Errorf("table.md: %q", table)
	}
	for method, samples := range map[string]int{"sgd": 1, "sgld": 4, "psgld": 4} {
		files, err := os.ReadDir(filepath.Join(j.dir, method, "samples"))
		if err != nil || len(files) != samples {
			t.Errorf("%s: %d samples, want %d (%v)", method, len(files), samples, err)
		}
	}
}

// A comparison that was stopped is resumed as a whole, and ends with the same table.
func TestResumedMainJob(t *testing.T) {
	whole := smallMainJob(t)
	c, _, _, _ := testConsole()
	if err := whole.run(context.Background(), nil, c); err != nil {
		t.Fatal(err)
	}
	j := smallMainJob(t)
	j.dir += " again"
	ctx, stop := context.WithCancel(context.Background())
	c, _, stopped, _ := testConsole()
	clock := c.now
	c.now = func() time.Time { // it is called after every window
		if _, err := os.Stat(filepath.Join(j.dir, "sgld", "samples", "chain00000-step000000030.safetensors")); err == nil {
			stop()
		}
		return clock()
	}
	if err := j.run(ctx, nil, c); !isCanceled(err) {
		t.Fatalf("error %v, want that of the context", err)
	}
	if want := "--resume '" + j.dir + "'\n"; !strings.Contains(stopped.String(), want) {
		t.Errorf("remarks %q, want %q", stopped, want)
	}
	again := smallMainJob(t)
	again.dataDir, again.resume, again.methods = "", j.dir, nil
	flags := pflag.NewFlagSet("pollen", pflag.ContinueOnError)
	(&mainJob{}).bind(flags)
	if err := flags.Set("seed", "3"); err != nil {
		t.Fatal(err)
	}
	c, _, remarks, _ := testConsole()
	if err := again.run(context.Background(), flags, c); err == nil || !strings.Contains(err.Error(), "--seed cannot be combined with --resume") {
		t.Errorf("another seed: %v", err)
	}
	flags = pflag.NewFlagSet("pollen", pflag.ContinueOnError)
	(&mainJob{}).bind(flags)
	if err := again.run(context.Background(), flags, c); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"SGD: all 60 steps were made before: nothing is left to do", "SGLD: resumed after "} {
		if !strings.Contains(remarks.String(), want) {
			t.Errorf("remarks %q, want %q", remarks, want)
		}
	}
	for _, name := range []string{"table.md", "sgd/metrics.jsonl", "sgld/metrics.jsonl", "sgld/diagnostics.json", "psgld/metrics.jsonl"} {
		if want, got := readFile(t, whole.dir, name), readFile(t, j.dir, name); !bytes.Equal(got, want) {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
}

// Work done before a method failed is reported; the error is that method's.
func TestMainJobReportsWhatIsDone(t *testing.T) {
	j := smallMainJob(t)
	j.methods[1].Spec.Schedule = optimizers.Constant{Rate: 1e10}
	c, out, remarks, _ := testConsole()
	err := j.run(context.Background(), nil, c)
	var notFinite *graph.NotFinite
	if !errors.As(err, &notFinite) {
		t.Fatalf("error %v", err)
	}
	if !strings.Contains(out.String(), "SGD") || strings.Contains(out.String(), "SGLD") {
		t.Errorf("results %q, want SGD's only", out)
	}
	if !strings.Contains(remarks.String(), filepath.Join(j.dir, "sgld")+": 0 of 60 steps done, 0 samples kept.") {
		t.Errorf("remarks %q", remarks)
	}
	readFile(t, j.dir, "report.html")
}

func TestInterruptedBeforeTheFirstStep(t *testing.T) {
	j := smallMainJob(t)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	c, out, _, _ := testConsole()
	if err := j.run(ctx, nil, c); !isCanceled(err) {
		t.Errorf("error %v, want that of the context", err)
	}
	if out.Len() > 0 {
		t.Errorf("results %q", out)
	}
}

func readFile(t *testing.T, dir, name string) []byte {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		t.Fatal(err)
	}
	if len(content) == 0 {
		t.Fatalf("%s is empty", name)
	}
	return content
}
