package bayes

import (
	"encoding/json"
	"maps"
	"os"
	"runtime"
	"runtime/debug"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pollen-ml/pollen/langevin"
)

func TestBuildOf(t *testing.T) {
	const commit = "0123456789012345678901234567890123456789"
	of := func(revision string, modified bool, more map[string]string) Build {
		versions := map[string]string{"go": runtime.Version()}
		maps.Copy(versions, more)
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

// Builds and devices are removed if all their steps are made again.
func TestContinuedBy(t *testing.T) {
	m := Manifest{Device: "cpu", Build: Build{Revision: "first"}}
	by := func(made int, device string) []Continued {
		m.Continued = m.continuedBy(made, device, m.Build)
		return m.Continued
	}
	by(10, "gpu")
	if got := by(30, "cpu"); len(got) != 2 || got[0].From != 10 || got[0].Device != "gpu" || got[1].From != 30 || got[1].Device != "cpu" {
		t.Errorf("two devices: %+v", got)
	}
	if got := by(20, "gpu"); len(got) != 1 || got[0].From != 10 {
		t.Errorf("from an older checkpoint: %+v", got)
	}
	if got := by(10, "cpu"); len(got) != 0 {
		t.Errorf("all steps made again: %+v", got)
	}
}

func FuzzManifest(f *testing.F) {
	for _, path := range []string{"../internal/runtest/testdata/plain/manifest.json", "../internal/runtest/testdata/kept/manifest.json"} {
		content, err := os.ReadFile(path)
		must(f, err)
		f.Add(content)
		f.Add(content[:len(content)/2])
	}
	f.Fuzz(func(t *testing.T, content []byte) {
		m, err := parseManifest(content)
		if err != nil {
			return
		}
		again, err := json.Marshal(m)
		must(t, err)
		if _, err := parseManifest(again); err != nil {
			t.Fatalf("what was read cannot be read again: %v: %s", err, again)
		}
	})
}

// A manifest that asks for more samples than steps is an error where samples are counted.
func TestExpectedWithoutPlan(t *testing.T) {
	spec, err := Spec{Method: langevin.SGLD{}, Samples: 1e9}.Resolve()
	must(t, err)
	run := newRun("", &Manifest{Spec: spec, Data: Data{Size: 1000}}, environmentOf(nil))
	if n, err := run.Expected(); err == nil || n != 0 {
		t.Errorf("Expected = %d, %v, want an error", n, err)
	}
	if _, err := run.Finished(); err == nil {
		t.Error("Finished: no error")
	}
}

// Errors of data with other classes than the run's state what to do.
func TestClassAdvice(t *testing.T) {
	d := Data{ClassNames: []string{"cat", "Great Dane"}}
	for class, want := range map[string]string{
		"great_dane": `name it "Great Dane"`, "CAT": `name it "cat"`, "1": "numbers are not matched with names",
		"horse": "by without-classes=horse,mule, or",
	} {
		if got := d.classAdvice(class, []string{"cat", "horse", "mule"}); !strings.Contains(got, want) {
			t.Errorf("%s: %q, want %q", class, got, want)
		}
	}
	if got := d.classAdvice("horse", []string{"horse"}); !strings.Contains(got, "it has none of these") {
		t.Errorf("without any class of the run: %q", got)
	}
}
