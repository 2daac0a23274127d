package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pollen-ml/pollen/bayes"
	"github.com/pollen-ml/pollen/diagnostics"
	"github.com/pollen-ml/pollen/internal/comparison"
	"github.com/pollen-ml/pollen/langevin"
)

// TestTables: every table equals the one generated from its record, every record has a table and
// its command in a document, and no record has an absolute path.
func TestTables(t *testing.T) {
	t.Chdir("../..")
	all := ""
	paths, err := documents()
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range paths {
		content, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		made, err := tables(string(content))
		if err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		if diff := cmp.Diff(made, string(content)); diff != "" {
			t.Errorf("%s: tables differ from the records, run go run ./docs/records: %s", path, diff)
		}
		all += string(content)
	}
	records, err := filepath.Glob("docs/records/*.json")
	if err != nil || len(records) == 0 {
		t.Fatalf("no records (%v)", err)
	}
	for _, path := range records {
		name := strings.TrimSuffix(filepath.Base(path), ".json")
		if !regexp.MustCompile(`table: (temperatures|scores|seeds|fidelity|printed) ` + name + ` `).MatchString(all) {
			t.Errorf("no document has a table of %s", path)
		}
		words := strings.NewReplacer("\\\n", " ")
		plain := strings.Join(strings.Fields(words.Replace(all)), " ")
		if content, err := os.ReadFile(path); err != nil || absolute.Match(content) {
			t.Errorf("%s has the absolute path %q (%v), want none", path, absolute.Find(content), err)
		}
		if r := new(Record); read(path, r) != nil || r.Command == "" || !strings.Contains(plain, r.Command) {
			t.Errorf("%s: no document has its command %q", path, r.Command)
		}
	}
}

// TestRecordsAreCurrent: records have no fields of diagnostics that package bayes does not have,
// so that a renamed field does not read as zero.
func TestRecordsAreCurrent(t *testing.T) {
	paths, err := filepath.Glob("*.json")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range paths {
		var r struct {
			Runs []struct{ Diagnostics json.RawMessage }
		}
		if err := read(path, &r); err != nil {
			t.Fatal(err)
		}
		for _, run := range r.Runs {
			if run.Diagnostics == nil {
				continue // of which only the scores were brought from another machine
			}
			d := json.NewDecoder(bytes.NewReader(run.Diagnostics))
			d.DisallowUnknownFields()
			if err := d.Decode(&diagnostics.Report{}); err != nil {
				t.Errorf("%s: %v", path, err)
				break
			}
		}
	}
}

// TestTablesAreMade: a figure changed by hand is restored, and an invalid marker is an error.
func TestTablesAreMade(t *testing.T) {
	t.Chdir("../..")
	content, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	readme := string(content)
	block := marked.FindString(readme)
	changed := strings.Replace(readme, block, strings.Map(func(r rune) rune {
		if r == '7' { // not in a marker
			return '1'
		}
		return r
	}, block), 1)
	made, err := tables(changed)
	if err != nil || changed == readme || made != readme {
		t.Errorf("a changed table was not restored (%v)", err)
	}
	for _, marker := range []string{
		"scores", "scores nothing accuracy", "scores main", "scores main beauty", "songs main", "steps nothing", "temperatures nothing",
		"seeds main", "seeds main beauty", "printed main accuracy",
	} {
		if _, err := tables("<!-- table: " + marker + " -->\n\n    a\n"); err == nil {
			t.Errorf("%q: no error", marker)
		}
	}
}

// TestFigures: the records have the rows and columns of the figures.
func TestFigures(t *testing.T) {
	t.Chdir("../..")
	dir := t.TempDir()
	for _, f := range figures {
		if err := os.MkdirAll(filepath.Join(dir, filepath.Dir(f.path)), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := drawFigures(dir); err != nil {
		t.Fatal(err)
	}
	if v, err := numberIn("a      b b  c\n-------------\nx y  1 ± 2  -\n", "x y", "b b"); v != 1 || err != nil {
		t.Errorf("numberIn = %v, %v, want 1", v, err)
	}
	for _, cell := range [][2]string{{"x", "b b"}, {"x y", "d"}, {"x y", "c"}} {
		if v, err := numberIn("a      b b  c\n-------------\nx y  1 ± 2  -\n", cell[0], cell[1]); err == nil {
			t.Errorf("numberIn(%q) = %v, want an error", cell, v)
		}
	}
}

// A run of a comparison has the title that the program prints.
func TestNameOf(t *testing.T) {
	dir := t.TempDir()
	spec := bayes.Spec{Network: "mlp-3", Method: langevin.PSGLD{}}
	c, err := comparison.Create(filepath.Join(dir, "main"), []comparison.Entry{{Title: "pSGLD", Spec: spec}}, nil)
	if err == nil {
		err = c.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{"main/psgld": "pSGLD", "main/psgld/": "pSGLD", "main/other": "other", "psgld": "psgld"} {
		if got, err := nameOf(filepath.Join(dir, path)); err != nil || got != want {
			t.Errorf("%s: the name is %q (%v), want %q", path, got, err, want)
		}
	}
}
