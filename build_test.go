package pollen

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/pkg/errors"
)

func TestBuildOf(t *testing.T) {
	const commit = "0123456789012345678901234567890123456789"
	of := func(revision string, modified bool, more map[string]string) Build {
		versions := map[string]string{"go": runtime.Version()}
		for path, version := range more {
			versions[path] = version
		}
		return Build{revision, modified, versions}
	}
	ours := func(version string) debug.Module { return debug.Module{Path: ourModule, Version: version} }
	replaced := func(path, version string) *debug.Module {
		return &debug.Module{Path: ourModule, Version: "v1.0.0", Replace: &debug.Module{Path: path, Version: version}}
	}
	vcs := func(modified string) []debug.BuildSetting {
		return []debug.BuildSetting{{Key: "vcs", Value: "git"}, {Key: "vcs.revision", Value: commit}, {Key: "vcs.modified", Value: modified}}
	}
	theirs := debug.Module{Path: "example.com/flowers", Version: "v0.0.0-20260102030405-012345678901"}
	for name, c := range map[string]struct {
		info *debug.BuildInfo
		want Build
	}{
		"nothing":            {nil, of(unknownRevision, true, nil)},
		"go build":           {&debug.BuildInfo{Main: ours("v0.0.0-20260102030405-012345678901"), Settings: vcs("false")}, of(commit, false, nil)},
		"go build, modified": {&debug.BuildInfo{Main: ours("v0.0.0-20260102030405-012345678901+dirty"), Settings: vcs("true")}, of(commit, true, nil)},
		"go run":             {&debug.BuildInfo{Main: ours("(devel)")}, of(unknownRevision, true, nil)},
		"go test":            {&debug.BuildInfo{Main: ours("")}, of(unknownRevision, true, nil)},
		"go install":         {&debug.BuildInfo{Main: ours("v1.2.3")}, of("v1.2.3", false, nil)},
		"another module's program": {
			&debug.BuildInfo{Main: theirs, Deps: []*debug.Module{{Path: "gorgonia.org/tensor", Version: "v0.9.24"}, {Path: ourModule, Version: "v1.2.3"}},
				Settings: vcs("false")},
			of("v1.2.3", false, map[string]string{"gorgonia.org/tensor": "v0.9.24"}),
		},
		"replaced by a folder": {
			&debug.BuildInfo{Main: theirs, Deps: []*debug.Module{replaced("../pollen", "")}, Settings: vcs("false")}, of(unknownRevision, true, nil),
		},
		"replaced by a fork": {
			&debug.BuildInfo{Main: theirs, Deps: []*debug.Module{replaced("example.com/fork", "v1.0.1")}}, of("example.com/fork@v1.0.1", false, nil),
		},
		"without us": {&debug.BuildInfo{Main: theirs, Settings: vcs("false")}, of(unknownRevision, true, nil)},
	} {
		if diff := cmp.Diff(c.want, buildOf(c.info)); diff != "" {
			t.Errorf("%s: (-want +got)\n%s", name, diff)
		}
	}
}

// A run that another build goes on with says which steps that made, and a build whose steps are all
// made again is forgotten.
func TestContinuedByAnotherBuild(t *testing.T) {
	data := trainOn(squares(t, 100, 4, 1))
	spec := Spec{Network: "mlp-3", Batch: 10, Epochs: 6, Samples: 4}
	whole := fit(t, spec, data, with(t, 1))
	if c := whole.Manifest().Continued; c != nil {
		t.Errorf("a run by one build: %+v", c)
	}
	dir := filepath.Join(t.TempDir(), "run")
	ctx, stop := stopAt(20)
	_, err := Fit(ctx, spec, data, dir, with(t, 1), stop)
	var stopped *UnfinishedError
	if !errors.As(err, &stopped) {
		t.Fatalf("the run did not stop: %v", err)
	}
	path := filepath.Join(dir, manifestFile)
	must(t, os.WriteFile(path, []byte(resealed(t, strings.Replace(readFile(t, path), `"revision": "`, `"revision": "another, not `, 1))), 0o644))
	on := func(last int) []Continued {
		t.Helper()
		ctx, stop := stopAt(last)
		if _, err := Resume(ctx, dir, data, with(t, 1), stop); last < 60 && err == nil {
			t.Fatal("the run did not stop")
		}
		m, err := ReadManifest(dir)
		must(t, err)
		return m.Continued
	}
	here := Continued{stopped.Made, whole.Manifest().Device, thisBuild()}
	for _, last := range []int{35, 45} {
		if diff := cmp.Diff([]Continued{here}, on(last)); diff != "" {
			t.Errorf("stopped again after %d: %s", last, diff)
		}
	}
	v, err := Verify(dir)
	must(t, err)
	note := fmt.Sprintf("note: the steps after %d were made by the build %s", here.From, here.Revision)
	if text := v.String(); len(v.Damaged) > 0 || !strings.Contains(text, note) {
		t.Error(text)
	}

	held, err := hold(dir, environment{})
	must(t, err)
	tr := training{dir: dir, manifest: &Manifest{}, writer: writer{dir: dir, lock: held}}
	tr.plan.Steps = 60
	*tr.manifest = whole.Manifest()
	noted := func(made int, device string) []Continued {
		t.Helper()
		must(t, tr.noteContinued(made, device, thisBuild()))
		return tr.manifest.Continued
	}
	own := whole.Manifest().Device
	noted(10, "gpu")
	if got := noted(30, own); len(got) != 2 || got[0].From != 10 || got[0].Device != "gpu" || got[1].From != 30 || got[1].Device != own {
		t.Errorf("two devices: %+v", got)
	}
	if got := noted(20, "gpu"); len(got) != 1 || got[0].From != 10 {
		t.Errorf("from an older checkpoint: %+v", got)
	}
	if got := noted(10, own); len(got) != 0 {
		t.Errorf("all made again: %+v", got)
	}
	if got := noted(60, "gpu"); len(got) != 0 {
		t.Errorf("nothing left to do: %+v", got)
	}
	if got := on(60); len(got) != 0 {
		t.Errorf("what was written: %+v", got)
	}
}
