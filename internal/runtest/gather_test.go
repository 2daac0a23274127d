package runtest

import (
	"context"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/bayes"
	"github.com/pollen-ml/pollen/internal/checksum"
	"github.com/pollen-ml/pollen/internal/file"
	"github.com/pollen-ml/pollen/internal/index"
	"github.com/pollen-ml/pollen/internal/journal"
	"github.com/pollen-ml/pollen/internal/onnxtest"
	"github.com/pollen-ml/pollen/internal/rundir"
	"github.com/pollen-ml/pollen/langevin"
	"github.com/pollen-ml/pollen/samples"
)

// chainsFrom specifies a small run of some chains, a part for Gather.
func chainsFrom(first, chains int) bayes.Spec {
	return bayes.Spec{Network: "mlp-4", Method: langevin.SGLD{}, Batch: 20, Epochs: 4, Samples: 2, Seed: 1, FirstChain: first, Chains: chains}
}

// Gathered parts equal the whole run: its samples, in order, and its predictions, to the bit.
func TestGather(t *testing.T) {
	data, place := squares(t, 100, 3, 1), t.TempDir()
	whole := fit(t, chainsFrom(0, 3), trainOn(data))
	var parts []string
	for i, chains := range []int{1, 2} {
		run, err := bayes.Fit(context.Background(), chainsFrom(i, chains), trainOn(data), filepath.Join(place, fmt.Sprint("part", i)))
		must(t, err)
		parts = append(parts, run.Dir())
	}
	want, err := whole.Predict(context.Background(), data)
	must(t, err)
	traced, err := whole.Diagnostics()
	must(t, err)
	for _, copied := range []bool{false, true} {
		run, err := gatherer(copied)(filepath.Join(place, fmt.Sprint("all", copied)), parts)
		must(t, err)
		if m := run.Manifest(); m.Spec.Chains != 3 || m.Spec.FirstChain != 0 {
			t.Errorf("%d chains from %d on, want the 3 from 0 on", m.Spec.Chains, m.Spec.FirstChain)
		}
		files, err := run.Samples()
		must(t, err)
		wanted, err := whole.Samples()
		must(t, err)
		for i, path := range files {
			if filepath.Base(path) != filepath.Base(wanted[i]) {
				t.Errorf("sample %d is %s, want %s", i, path, wanted[i])
			}
		}
		if copied {
			must(t, os.RemoveAll(parts[0])) // it has its own now
		}
		got, err := run.Predict(context.Background(), data)
		must(t, err)
		for i := range want {
			if fmt.Sprint(got[i]) != fmt.Sprint(want[i]) {
				t.Fatalf("copied %t: image %d: %v, want %v", copied, i, got[i], want[i])
			}
		}
		d, err := run.Diagnostics()
		must(t, err)
		if !(d.WeightRHat > 0.5 && d.LossRHat > 0.5) || d.WeightRHat != traced.WeightRHat || d.LossRHat != traced.LossRHat {
			t.Errorf("R-hat %v of the weight and %v of the loss, want the whole run's %v and %v", d.WeightRHat, d.LossRHat, traced.WeightRHat, traced.LossRHat)
		}
		v, err := bayes.Verify(run.Dir())
		must(t, err)
		if len(v.Damaged) != 0 || v.Samples != 6 || v.Expected != 6 || !v.Resumable ||
			!strings.HasSuffix(v.String(), "6 of 6 samples can be used; all 40 steps are made") {
			t.Errorf("verified as %v", v)
		}
		p, err := run.Progress()
		must(t, err)
		if p.State != bayes.Finished || p.Samples != 6 || p.Expected != 6 || p.Made != p.Steps || !math.IsNaN(p.PerSecond) {
			t.Errorf("progress %+v, want 6 samples of a finished run", p)
		}
	}
}

// Chains swap temperatures as often in parts as in the whole run. Without a ladder none is counted.
func TestGatherSwaps(t *testing.T) {
	data, place := squares(t, 100, 3, 1), t.TempDir()
	for _, temperatures := range [][]float64{nil, {1, 1.02}} {
		swaps := func(run *bayes.Run, err error) float64 {
			t.Helper()
			must(t, err)
			d, err := run.Diagnostics()
			must(t, err)
			return float64(d.Swaps)
		}
		var parts []string
		for i, chains := range []int{1, 2, 3} { // the last is the whole
			spec := chainsFrom(i%2, chains)
			spec.Method, spec.Batch, spec.Epochs, spec.Temperatures = langevin.SGLD{}, 100, 500, temperatures
			run, err := bayes.Fit(context.Background(), spec, trainOn(data), filepath.Join(place, fmt.Sprint(len(temperatures), "part", i)))
			must(t, err)
			parts = append(parts, run.Dir())
		}
		got := swaps(bayes.Gather(filepath.Join(place, fmt.Sprint(len(temperatures), "all")), parts[:2]))
		want := swaps(bayes.Open(parts[2]))
		if temperatures == nil && !math.IsNaN(got) || temperatures != nil && !(want > 0 && want < 1 && math.Abs(got-want) < 1e-12) {
			t.Errorf("temperatures %v: swaps %v, want %v", temperatures, got, want)
		}
	}
}

// A stopped run contributes the samples that it has, and all of them once it was resumed; copies
// do not change.
func TestGatherGrowing(t *testing.T) {
	data, place := squares(t, 100, 3, 1), t.TempDir()
	spec := chainsFrom(0, 1)
	spec.Samples, spec.Epochs = 10, 40
	ctx, stopping := stopAt(120)
	_, err := bayes.Fit(ctx, spec, trainOn(data), filepath.Join(place, "part"), stopping)
	if !errors.As(err, new(*bayes.UnfinishedError)) {
		t.Fatal(err)
	}
	named, err := bayes.Gather(filepath.Join(place, "named"), []string{filepath.Join(place, "part")})
	must(t, err)
	copied, err := bayes.GatherCopies(filepath.Join(place, "copied"), []string{filepath.Join(place, "part")})
	must(t, err)
	parts, err := named.Parts()
	must(t, err)
	p, err := parts[0].Progress()
	must(t, err)
	if p.State != bayes.Stopped || p.Made < 100 || p.Made >= p.Steps || p.Samples < 1 || p.Samples >= 10 || p.Process != os.Getpid() {
		t.Errorf("progress %+v, want that of a run that was stopped on the way", p)
	}
	if p.Error != context.Canceled.Error() {
		t.Errorf("stopped by %q, want %q, without the directory, which the reader has", p.Error, context.Canceled)
	}
	if all, err := named.Progress(); err != nil || fmt.Sprint(all.PerSecond) != fmt.Sprint(p.PerSecond) {
		t.Errorf("%v steps a second (%v), want %v", all.PerSecond, err, p.PerSecond)
	}
	v, err := bayes.Verify(named.Dir())
	must(t, err)
	want := fmt.Sprintf("%d of 10 samples can be used; it can be resumed from step %d of 200\n  note: it is a gathered run", p.Samples, v.Made)
	if got := v.String(); !strings.Contains(got, want) {
		t.Errorf("verified: %s, want %q", got, want)
	}
	before := p.Samples
	_, err = bayes.Resume(context.Background(), filepath.Join(place, "part"), trainOn(data))
	must(t, err)
	for run, want := range map[*bayes.Run]int{named: 10, copied: before} {
		files, err := run.Samples()
		must(t, err)
		if len(files) != want {
			t.Errorf("%s has %d samples, want %d", run.Dir(), len(files), want)
		}
	}
}

// TestVerifyGathered: verifying a gathered run finds that its own calibration is gone, and that its
// copy of the network's file was changed.
func TestVerifyGathered(t *testing.T) {
	data := splitsOf(t)
	part := fit(t, pretrained(t, onnxtest.Backbone{}), data, with(t, 1))
	run, err := bayes.Gather(filepath.Join(t.TempDir(), "gathered"), []string{part.Dir()})
	must(t, err)
	must(t, run.Calibrate(t.Context(), data.Validation))
	verify := func(what string, want ...string) {
		t.Helper()
		v, err := bayes.Verify(run.Dir())
		must(t, err)
		var got []string
		for _, d := range v.Damaged {
			got = append(got, d.File)
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: %q are damaged, want %q", what, got, want)
		}
	}
	verify("whole")
	calibration := filepath.Join(run.Dir(), rundir.CalibrationFile)
	must(t, os.Remove(calibration))
	verify("without a calibration", calibration)
	model := filepath.Join(run.Dir(), rundir.ModelDir, "backbone.onnx")
	content, err := os.ReadFile(model)
	must(t, err)
	content[len(content)/2]++
	must(t, os.WriteFile(model, content, 0o600))
	verify("with another network", model, calibration)
}

// TestGatherStates: a copy of a run that keeps states is whole, and has the digest of the run.
func TestGatherStates(t *testing.T) {
	spec := bayes.Spec{Network: "mlp-5", Method: bayes.SWAG{Rank: 2}, Epochs: 20, Samples: 2}
	run, dir := fit(t, spec, trainOn(squares(t, 60, 3, 1))), t.TempDir()
	copied, err := bayes.GatherCopies(filepath.Join(dir, "copied"), []string{run.Dir()})
	must(t, err)
	v, err := bayes.Verify(copied.Dir())
	must(t, err)
	if len(v.Damaged) > 0 {
		t.Error(v)
	}
	parts, err := copied.Parts()
	must(t, err)
	if got, want := digestOf(t, parts[0].Dir()), digestOf(t, run.Dir()); got != want {
		t.Errorf("the copy has the digest %s, want %s", got, want)
	}
}

// A chain and one that starts where it ended sample the same posterior.
func TestGatherContinued(t *testing.T) {
	data, place := squares(t, 100, 3, 1), t.TempDir()
	spec := chainsFrom(0, 1)
	var parts []string
	for i := range 3 {
		run, err := bayes.Fit(context.Background(), spec, trainOn(data), filepath.Join(place, fmt.Sprint("part", i)))
		must(t, err)
		parts = append(parts, run.Dir())
		spec.Seed++
		spec.Start = run.Dir()
	}
	for _, c := range []struct {
		parts []string
		start string // of all
	}{{parts, ""}, {parts[1:], ""}, {parts[1:2], parts[0]}} {
		run, err := bayes.Gather(filepath.Join(place, fmt.Sprint("of", len(c.parts))), c.parts)
		must(t, err)
		files, err := run.Samples()
		must(t, err)
		if m := run.Manifest(); len(files) != 2*len(c.parts) || m.Spec.Chains != len(c.parts) || m.Spec.Start != c.start {
			t.Errorf("%d samples of %d chains from %q, want 2 of each of %d chains from %q", len(files), m.Spec.Chains, m.Spec.Start, len(c.parts), c.start)
		}
		_, err = run.Predict(context.Background(), data)
		must(t, err)
	}
}

func TestGatherRefuses(t *testing.T) {
	data, other, place := squares(t, 100, 3, 1), squares(t, 100, 3, 2), t.TempDir()
	make := func(name string, spec bayes.Spec) string {
		d := data
		if name == "other" {
			d = other
		}
		run, err := bayes.Fit(context.Background(), spec, trainOn(d), filepath.Join(place, name))
		must(t, err)
		return run.Dir()
	}
	first := make("first", chainsFrom(0, 1))
	cold := chainsFrom(1, 1)
	cold.Temperature = new(0.5)
	for want, parts := range map[string][]string{
		"no runs to gather":             nil,
		"is given twice":                {first, first},
		"chain 0 of seed 1":             {first, make("again", chainsFrom(0, 2))},
		`temperature is "1" in`:         {first, make("cold", cold)},
		"the data":                      {first, make("other", chainsFrom(1, 1))},
		"is not the directory of a run": {first, place},
	} {
		dir := filepath.Join(place, "none")
		if _, err := bayes.Gather(dir, parts); err == nil {
			t.Errorf("%v: no error", parts)
		} else {
			wantError(t, "gather", err, want)
		}
		if _, err := os.Stat(dir); !os.IsNotExist(err) {
			t.Fatalf("a refused gathering left %s: %v", dir, err)
		}
	}
	// An error while files are written, and a kill, leave nothing in the way of another try.
	dir := filepath.Join(place, "all")
	for _, failing := range []string{index.File, rundir.ManifestFile} {
		end := file.Inject(func(call, path string, _ int) (int, error) {
			if call == file.CallRename && filepath.Base(path) == failing {
				return 0, syscall.ENOSPC
			}
			return 0, nil
		})
		_, err := bayes.GatherCopies(dir, []string{first})
		end()
		if _, left := os.Stat(dir); !errors.Is(err, syscall.ENOSPC) || !os.IsNotExist(left) {
			t.Fatalf("an error at %s: %v, and the directory stays: %v", failing, err, left)
		}
	}
	_, err := bayes.GatherCopies(dir, []string{first})
	must(t, err)
	must(t, os.Remove(filepath.Join(dir, rundir.ManifestFile)))
	must(t, os.Truncate(filepath.Join(dir, index.File), 0))
	run, err := bayes.Gather(dir, []string{first})
	must(t, err)
	if _, err := os.Stat(filepath.Join(dir, rundir.PartsDir)); !os.IsNotExist(err) {
		t.Errorf("parts that a killed process had copied: %v, want them removed", err)
	}
	_, err = bayes.Resume(context.Background(), run.Dir(), trainOn(data))
	wantInvalid(t, "resume", err, "resume its parts")
	_, err = bayes.Gather(filepath.Join(place, "none"), []string{run.Dir()})
	wantInvalid(t, "gathered twice", err, "gather its parts")
}

// A thousand chains, each in a folder of its own, are gathered and looked at within seconds, in
// memory that does not grow with their samples.
func TestGatherAThousand(t *testing.T) {
	const chains = 1000
	data, place := squares(t, 100, 3, 1), t.TempDir()
	first := fit(t, chainsFrom(0, 1), trainOn(data))
	var parts []string
	for chain := range chains {
		dir := filepath.Join(place, fmt.Sprint("part-", chain))
		parts = append(parts, dir)
		simulate(t, first, dir, chain)
	}
	began := time.Now()
	run, err := bayes.Gather(filepath.Join(place, "all"), parts)
	must(t, err)
	p, err := run.Progress()
	must(t, err)
	took := time.Since(began)
	var memory runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&memory)
	if p.Samples != 2*chains || p.State != bayes.Finished {
		t.Errorf("progress %+v, want %d samples", p, 2*chains)
	}
	t.Logf("%d chains: %v, %d MiB", chains, took, memory.HeapAlloc>>20)
	if took > 10*time.Second {
		t.Errorf("it took %v, want at most 10 s", took)
	}
}

// simulate makes the folder that a run of one chain would have, from another chain's, without
// waiting for the disk.
func simulate(t *testing.T, of *bayes.Run, dir string, chain int) {
	t.Helper()
	must(t, os.MkdirAll(filepath.Join(dir, rundir.SamplesDir), 0o755))
	var lines []any
	write := func(name string, content []byte) {
		must(t, os.WriteFile(filepath.Join(dir, name), content, 0o644))
		if sum, err := checksum.Check(content, len(content)); err == nil {
			lines = append(lines, index.Line{File: name, Bytes: len(content), Sum: sum})
		}
	}
	for _, name := range []string{rundir.MetricsFile, rundir.OutcomeFile} {
		content, err := os.ReadFile(filepath.Join(of.Dir(), name))
		must(t, err)
		must(t, os.WriteFile(filepath.Join(dir, name), content, 0o644))
	}
	files, err := (&rundir.Reader{Dir: of.Dir(), LeftOut: &rundir.LeftOut{}}).List()
	must(t, err)
	for _, f := range files {
		_, step, err := samples.ParseFileName(f.Path)
		must(t, err)
		name := rundir.SamplesDir + "/" + samples.FileName(chain, step)
		must(t, os.Link(f.Path, filepath.Join(dir, name)))
		lines = append(lines, index.Line{File: name, Bytes: 1, Sum: f.Sum})
	}
	m := of.Manifest()
	m.Spec.FirstChain = chain
	content, err := checksum.JSON(&m, "  ")
	must(t, err)
	write(rundir.ManifestFile, content)
	listed, err := journal.Create(filepath.Join(dir, index.File), nil)
	must(t, err)
	for _, line := range lines {
		must(t, listed.Add(line))
	}
	must(t, listed.Close())
}

// gatherer returns the function that gathers copies, or the one that refers to the parts.
func gatherer(copied bool) func(dir string, parts []string, options ...bayes.Option) (*bayes.Run, error) {
	if copied {
		return bayes.GatherCopies
	}
	return bayes.Gather
}
