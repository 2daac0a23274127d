package runtest

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/pollen-ml/pollen/bayes"
	"github.com/pollen-ml/pollen/datasets"
	"github.com/pollen-ml/pollen/internal/checksum"
	"github.com/pollen-ml/pollen/internal/index"
	"github.com/pollen-ml/pollen/internal/rundir"
	"github.com/pollen-ml/pollen/samples"
)

// relist lists a file that a test has changed, with its new checksum, as the author of a foreign
// run could.
func relist(t testing.TB, dir string, changed index.Line) {
	t.Helper()
	x, err := index.Read(dir)
	must(t, err)
	var lines []index.Line
	for _, name := range x.Names {
		if name == changed.File {
			lines = append(lines, changed)
		} else {
			lines = append(lines, x.Lines[name])
		}
	}
	_, err = index.Rewrite(dir, lines, nil)
	must(t, err)
}

// change returns a function that changes the manifest of a run, whose members are m.
func change(set func(m map[string]any)) func(t testing.TB, dir string) {
	return func(t testing.TB, dir string) {
		t.Helper()
		m := map[string]any{}
		must(t, json.Unmarshal([]byte(readFile(t, filepath.Join(dir, rundir.ManifestFile))), &m))
		set(m)
		delete(m, checksum.Key)
		content, err := checksum.JSON(m, "  ")
		must(t, err)
		must(t, os.WriteFile(filepath.Join(dir, rundir.ManifestFile), content, 0o644))
		line, err := index.OfJSON(dir, rundir.ManifestFile)
		must(t, err)
		relist(t, dir, line)
	}
}

func config(key string, value any) func(t testing.TB, dir string) {
	return change(func(m map[string]any) { m["config"].(map[string]any)[key] = value })
}

func member(key string, value any) func(t testing.TB, dir string) {
	return change(func(m map[string]any) { m[key] = value })
}

func classNames(names ...string) func(t testing.TB, dir string) {
	return change(func(m map[string]any) { m["data"].(map[string]any)["classNames"] = names })
}

// numbered are n different names.
func numbered(n int) (names []string) {
	for i := range n {
		names = append(names, fmt.Sprint("x", i))
	}
	return names
}

// firstSample returns the path of a run's first sample.
func firstSample(t testing.TB, dir string) string {
	t.Helper()
	files, err := samples.NewStore(filepath.Join(dir, rundir.SamplesDir)).Files()
	must(t, err)
	return files[0]
}

// renamed changes the first sample of a run and keeps its name.
func renamed(set func(s *samples.Sample)) func(t testing.TB, dir string) {
	return func(t testing.TB, dir string) {
		t.Helper()
		path := firstSample(t, dir)
		s, err := samples.ReadSample(path)
		must(t, err)
		set(&s)
		store := samples.NewStore(t.TempDir())
		must(t, store.Create())
		files, err := store.Write(nil, s)
		must(t, err)
		written, err := store.Files()
		must(t, err)
		must(t, os.WriteFile(path, []byte(readFile(t, written[0])), 0o644))
		relist(t, dir, index.Line{File: rundir.SamplesDir + "/" + filepath.Base(path), Bytes: files[0].Bytes, Sum: files[0].Sum})
	}
}

// instead replaces a file of a run; first names the first sample.
func instead(name string, put func(path string) error) func(t testing.TB, dir string) {
	return func(t testing.TB, dir string) {
		t.Helper()
		path := filepath.Join(dir, name)
		if name == "first" {
			path = firstSample(t, dir)
		}
		must(t, os.Remove(path))
		if err := put(path); err != nil {
			t.Skip(err)
		}
	}
}

func sparse(path string) error {
	if err := os.WriteFile(path, nil, 0o644); err != nil {
		return err
	}
	return os.Truncate(path, 20<<30)
}

func aDir(path string) error { return os.Mkdir(path, 0o755) }

// laterCheckpoint changes the number of steps in a run's checkpoint.
func laterCheckpoint(t testing.TB, dir string) {
	t.Helper()
	path := filepath.Join(dir, rundir.CheckpointFile)
	content := []byte(strings.Replace(readFile(t, path), `"steps":"10"`, `"steps":"99"`, 1))
	sum, err := checksum.Check(content, checksum.Header(content))
	if err == nil {
		t.Fatalf("the checkpoint is not changed (%s)", sum)
	}
	at := strings.Index(string(content), `"sha256":"`) + len(`"sha256":"`)
	copy(content[at:], checksum.Blank)
	_, err = checksum.Fill(content, checksum.Header(content))
	must(t, err)
	must(t, os.WriteFile(path, content, 0o644))
}

// hostile is a change of a run as a stranger could make it, with right checksums. Each use of the
// run must return an error that contains the given text, or succeed if the text is "".
type hostile struct {
	name                                     string
	make                                     func(t testing.TB, dir string)
	predict, assess, verify, status, resumes string
}

// all is a hostile run that no command can use.
func all(name string, make func(t testing.TB, dir string), want string) hostile {
	return hostile{name, make, want, want, want, want, want}
}

var hostileRuns = []hostile{
	all("a part of itself", member("parts", []string{"."}), "gathered run"),
	all("more parts than chains", member("parts", numbered(1000)), "parts must be at most"),
	all("a part twice", change(func(m map[string]any) {
		m["parts"] = []string{"x", "./x"}
		m["config"].(map[string]any)["chains"] = 2
	}), `parts must differ, got "x" twice`),
	all("steps beyond the epochs", member("steps", 1000000000000), "steps must be those of"),
	all("no steps", member("steps", 0), "steps and parameters must be at least 1"),
	all("no parameters", member("parameters", 0), "steps and parameters must be at least 1"),
	all("equal classes", classNames("a", "b", "a", "c"), `classNames must differ, got "a" twice`),
	{
		name: "a huge network", make: config("model", "mlp-60000-60000"), predict: "more parameters than the", assess: "more parameters than the",
		verify: "more parameters than the", resumes: "more parameters than the",
	},
	{
		name: "too many classes", make: classNames(numbered(60000)...), predict: "more parameters than the", assess: "but the classes of",
		verify: "more parameters than the", resumes: "more parameters than the",
	},
	all("more classes than data can have", classNames(numbered(100000)...), "must be at least 2 and at most 65536, got 100000"),
	{name: "a sample of another step", make: renamed(func(s *samples.Sample) { s.Step++ }),
		predict: "it is the sample chain00000-step", assess: "it is the sample chain00000-step", verify: "it is the sample chain00000-step",
		resumes: "it is the sample chain00000-step"},
	{name: "a sample of another chain", make: renamed(func(s *samples.Sample) { s.Chain = 7 }),
		predict: "it is the sample chain00007-step", assess: "it is the sample chain00007-step", verify: "it is the sample chain00007-step",
		resumes: "it is the sample chain00007-step"},
	{name: "a sample without weight", make: renamed(func(s *samples.Sample) { s.Weight = 0 }),
		predict: "its weight must be positive, got 0", assess: "its weight must be positive, got 0", verify: "its weight must be positive, got 0",
		resumes: "its weight must be positive, got 0"},
	{name: "a network that nobody has", make: config("model", "mlp--5"), predict: `network "mlp--5"`, assess: `network "mlp--5"`,
		resumes: `network "mlp--5"`},
	all("a sparse manifest", instead(rundir.ManifestFile, sparse), "must have at most"),
	all("a directory as manifest", instead(rundir.ManifestFile, aDir), "must be a regular file, got a directory"),
	{
		name: "a sparse sample", make: instead("first", sparse), predict: "header", assess: "header", verify: "header", resumes: "header",
	},
	{name: "a directory as sample", make: instead("first", aDir), predict: "got a directory", assess: "got a directory", verify: "got a directory",
		resumes: "got a directory"},
	{name: "a sparse calibration", make: instead(rundir.CalibrationFile, sparse),
		predict: "must have at most", assess: "must have at most", verify: "must have at most"},
	{name: "a sparse index", make: instead(index.File, sparse), predict: "must have at most", assess: "must have at most", verify: "must have at most",
		status: "must have at most"},
	{name: "sparse metrics", make: instead(rundir.MetricsFile, sparse), verify: "must have at most", resumes: "must have at most"},
	{name: "a sparse checkpoint", make: func(t testing.TB, dir string) {
		must(t, os.Remove(filepath.Join(dir, rundir.OlderCheckpoint)))
		instead(rundir.CheckpointFile, sparse)(t, dir)
	}, verify: "header", resumes: "header"},
	{name: "a checkpoint after the last step", make: laterCheckpoint, verify: "steps must be at most 10, got 99",
		resumes: "steps must be at most 10, got 99"},
	{name: "a sparse outcome", make: instead(rundir.OutcomeFile, sparse), verify: "must have at most", status: "must have at most"},
}

// foreignRun makes the run that hostile runs are copies of, and its data.
func foreignRun(t *testing.T) (*bayes.Run, *datasets.Splits) {
	t.Helper()
	data := trainOn(squares(t, 100, 4, 1))
	data.Validation = squares(t, 40, 4, 2)
	return fit(t, quick(), data), data
}

// Each command gives an error that names the cause, soon and without much memory, or the right
// result, whatever a stranger put into a run's directory.
func TestHostileRuns(t *testing.T) {
	good, data := foreignRun(t)
	for _, h := range hostileRuns {
		t.Run(h.name, func(t *testing.T) { h.test(t, good.Dir(), data) })
	}
}

func (h hostile) test(t *testing.T, good string, data *datasets.Splits) {
	test := squares(t, 40, 4, 2)
	ctx := context.Background()
	for _, use := range []struct {
		name, want string
		call       func(dir string) error
	}{
		{"predict", h.predict, func(dir string) error {
			run, err := bayes.Open(dir)
			if err == nil {
				_, err = run.Predict(ctx, test)
			}
			return err
		}},
		{"assess", h.assess, func(dir string) error {
			run, err := bayes.Open(dir)
			if err == nil {
				_, err = run.Assess(ctx, test, nil)
			}
			return err
		}},
		{"verify", h.verify, func(dir string) error {
			v, err := bayes.Verify(dir)
			if err == nil && len(v.Damaged) > 0 {
				err = v.Damaged[0]
			}
			return err
		}},
		{"status", h.status, func(dir string) error {
			run, err := bayes.Open(dir)
			if err == nil {
				_, err = run.Progress()
			}
			return err
		}},
		{"resume", h.resumes, func(dir string) error {
			_, err := bayes.Resume(ctx, dir, data)
			return err
		}},
	} {
		dir := filepath.Join(t.TempDir(), "run")
		must(t, os.CopyFS(dir, os.DirFS(good)))
		h.make(t, dir)
		ended := make(chan error, 1)
		go func() { ended <- use.call(dir) }()
		select {
		case err := <-ended:
			if use.want == "" && err != nil {
				t.Errorf("%s: %v, want no error", use.name, err)
			} else if use.want != "" && (err == nil || !strings.Contains(err.Error(), use.want)) {
				t.Errorf("%s: error %.300v, want one with %q", use.name, err, use.want)
			}
		case <-time.After(30 * time.Second):
			t.Fatalf("%s: no result after 30 seconds", use.name)
		}
	}
}

// Two gathered runs that have each other as parts.
func TestPartsInALoop(t *testing.T) {
	good, _ := foreignRun(t)
	parent := t.TempDir()
	for _, name := range []string{"a", "b"} {
		dir := filepath.Join(parent, name)
		must(t, os.CopyFS(dir, os.DirFS(good.Dir())))
		member("parts", []string{map[string]string{"a": "../b", "b": "../a"}[name]})(t, dir)
	}
	dir := filepath.Join(parent, "a")
	run, err := bayes.Open(dir)
	must(t, err)
	_, err = run.Samples()
	wantDamaged(t, err, filepath.Join(dir, rundir.ManifestFile))
	wantError(t, "samples", err, "must not be a gathered run")
	v, err := bayes.Verify(dir)
	must(t, err)
	if len(v.Damaged) != 1 || !strings.Contains(v.Damaged[0].Error(), "must not be a gathered run") {
		t.Errorf("Verify: %v, want one damaged part", v)
	}
}
