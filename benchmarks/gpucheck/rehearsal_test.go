//go:build unix

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/pollen-ml/pollen/cuda/emulator"
	"github.com/pollen-ml/pollen/internal/testenv"
)

// packedEmulated packs the check with a library of the emulated GPU.
func packedEmulated(t *testing.T, library string) string {
	t.Helper()
	from, dir := packed(t), filepath.Join(t.TempDir(), "gpu")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	// Links save 250 MB: a program looks for the other programs next to itself.
	entries, err := os.ReadDir(from)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		name := e.Name()
		if e.IsDir() {
			err = os.CopyFS(filepath.Join(dir, name), os.DirFS(filepath.Join(from, name)))
		} else {
			err = os.Link(filepath.Join(from, name), filepath.Join(dir, name))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	content, err := os.ReadFile(library)
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "libemulator.so"), content, 0o755)
	}
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// TestRehearsal runs some checks of the first call as on a machine with a GPU: in an empty
// directory, without Go.
func TestRehearsal(t *testing.T) {
	testenv.NeedsAll(t, "packing takes a minute")
	dir, empty := packedEmulated(t, emulator.Build(t)), t.TempDir()
	command := exec.Command(filepath.Join(dir, "gpucheck"), "first", "--emulated", "--python", "false", "--only", "devices,rung-open,rung-filter,calls", "out")
	command.Dir = empty
	command.Env = []string{"PATH=/usr/bin:/bin"}
	output, err := command.CombinedOutput()
	if err != nil {
		t.Errorf("%v: %s", err, output)
	}
	out := filepath.Join(empty, "out")
	checkSizes(t, out)
	r := readRecord(t, out)
	for _, name := range []string{"devices", "rung-open", "rung-filter", "calls"} {
		if got := r.status(name); got != "passed" {
			t.Errorf("%s: %q", name, got)
		}
	}
	if r.Failed || !r.Complete || !r.Emulated || len(r.Features) != 2 || !strings.Contains(r.Machine["devices"].(string), "Emulated GPU") {
		t.Errorf("%+v", r)
	}
	if text, err := os.ReadFile(filepath.Join(out, "calls.json")); err != nil || !strings.Contains(string(text), "longest line of calls") {
		t.Errorf("the calls' times: %.200s, %v", text, err)
	}
}

// TestRehearsalOfFaults: with a kernel that is wrong, hangs or faults, the record names the feature
// that is wrong, and the feature is off in all that follows, which passes.
func TestRehearsalOfFaults(t *testing.T) {
	testenv.NeedsAll(t, "packing takes a minute")
	if os.Getenv(emulator.LibraryVariable) != "" {
		t.Skip("the emulated GPU is not built here")
	}
	const last = "convolveGroupFilter(partial.at(), dout.at(), x.at(), way, groups, (unsigned*)stages);" // of the kernel
	for name, c := range map[string]struct{ mistake, status, failure string }{
		"wrong":  {"partial.at()[0] += 1;", "failed: exit status 1", "TestGroupedFilters/"},
		"hangs":  {"for (volatile int i = 0; i == 0;) {}", "cut: stopped after", "was running at the end"},
		"faults": {"trap();", "failed: exit status 1", "LAUNCH_FAILED"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := packedEmulated(t, emulator.BuildMutant(t, "conv2d_nhwc_sm90.cu", last, last+" "+c.mistake))
			if before := rungSeconds; name == "hangs" {
				rungSeconds = 2 // times emulatedPatience
				defer func() { rungSeconds = before }()
			}
			out := filepath.Join(t.TempDir(), "out")
			r, err := newRunner(options{call: "first", seconds: 200, python: "false", emulated: true, only: "devices,rung-open,rung-filter,calls"}, dir, out)
			if err != nil {
				t.Fatal(err)
			}
			if status := r.run(firstLight); status != 1 {
				t.Errorf("exit status %d", status)
			}
			checkSizes(t, out)
			saved := readRecord(t, out)
			for _, f := range saved.Features {
				if f.Right == (f.Feature == "wgmma, by the filter") {
					t.Errorf("%+v", f)
				}
			}
			if !slices.Equal(saved.Off, []string{noWgmma}) || !saved.Failed || !saved.Complete || len(saved.Features) != 2 {
				t.Errorf("%+v", saved)
			}
			for name, want := range map[string]string{"rung-open": "passed", "rung-filter": c.status, "calls": "passed"} {
				if got := saved.status(name); !strings.HasPrefix(got, want) {
					t.Errorf("%s: %q, want %q", name, got, want)
				}
			}
			for _, v := range saved.Checks {
				if v.Check == "rung-filter" && !strings.Contains(strings.Join(v.Failures, "\n"), c.failure) {
					t.Errorf("the failures do not mention %q: %v", c.failure, v.Failures)
				}
			}
			if _, err := os.Stat(filepath.Join(out, "dumps.tar.gz")); (err == nil) != (name == "wrong") {
				t.Errorf("dumps: %v", err)
			}
		})
	}
}
