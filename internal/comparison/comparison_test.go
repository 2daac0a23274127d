package comparison

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/bayes"
	"github.com/pollen-ml/pollen/datasets"
	"github.com/pollen-ml/pollen/internal/checksum"
	"github.com/pollen-ml/pollen/langevin"
)

// stripes are images whose class is the place of a bright row.
func stripes(t testing.TB) *datasets.Splits {
	t.Helper()
	const n, side = 40, 4
	images, labels := make([]byte, n*side*side), make([]int32, n)
	for i := range n {
		labels[i] = int32(i % 2)
		for x := range side {
			images[i*side*side+i%2*side+x] = byte(200 + i)
		}
	}
	data, err := datasets.New("stripes", images, labels, 1, side, side, nil)
	if err != nil {
		t.Fatal(err)
	}
	return &datasets.Splits{Train: data}
}

func entries() []Entry {
	spec := bayes.Spec{Network: "mlp-2", Method: langevin.SGLD{}, Batch: 10, Epochs: 3, Samples: 2}
	other := spec
	other.Seed = 3
	return []Entry{{"SGLD", spec}, {"Other", other}}
}

func TestGoesOn(t *testing.T) {
	data, dir := stripes(t), filepath.Join(t.TempDir(), "main")
	c, err := Create(dir, entries(), map[string]string{"data": "stripes"})
	if err != nil {
		t.Fatal(err)
	}
	_, err = Open(dir)
	var busy *bayes.LockedError
	if !errors.As(err, &busy) || busy.Process != os.Getpid() {
		t.Errorf("opened by another at the same time: %v", err)
	}
	if _, err := c.Fit(context.Background(), c.Entries[0], data); err != nil {
		t.Fatal(err)
	}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := Create(dir, entries(), nil); err == nil || !strings.Contains(err.Error(), "not empty") {
		t.Errorf("begun again: %v", err)
	}
	again, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	if again.Notes["data"] != "stripes" || len(again.Entries) != 2 || again.Entries[1].Spec.Seed != 3 || again.Remark() != "" {
		t.Errorf("%+v", again)
	}
	for _, e := range again.Entries {
		run, err := again.Fit(context.Background(), e, data)
		if err != nil {
			t.Fatal(err)
		}
		if files, err := run.Samples(); err != nil || len(files) < 2 {
			t.Errorf("%s: samples %v (%v)", e.Title, files, err)
		}
	}
	if err := again.Close(); err != nil {
		t.Fatal(err)
	}

	if _, err := Begin(dir, entries()[:1], nil); err == nil || !strings.Contains(err.Error(), "has other entries") {
		t.Errorf("begun with other entries: %v", err)
	}
	for _, place := range []string{dir, filepath.Join(t.TempDir(), "new")} {
		begun, err := Begin(place, entries(), nil)
		if err != nil {
			t.Fatal(err)
		}
		if len(begun.Entries) != 2 || (begun.Notes["data"] == "stripes") != (place == dir) {
			t.Errorf("%s: %+v", place, begun)
		}
		if err := begun.Close(); err != nil {
			t.Fatal(err)
		}
	}

	path := filepath.Join(dir, recordFile)
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	content[len(content)/2] ^= 4
	if err := os.WriteFile(path, content, 0o644); err != nil {
		t.Fatal(err)
	}
	_, err = Open(dir)
	var damaged *bayes.DamagedError
	if !errors.As(err, &damaged) || damaged.File != path {
		t.Errorf("a changed record: %v", err)
	}
}

func TestRefuses(t *testing.T) {
	for _, title := range []string{"", "..", "a/b", `a\b`, ".", "lock", "writer.json", recordFile} {
		if _, err := Create(t.TempDir(), []Entry{{Title: title}}, nil); err == nil {
			t.Errorf("title %q: no error", title)
		}
	}
	twice := []Entry{{Title: "a"}, {Title: "A"}}
	for _, list := range [][]Entry{nil, twice} {
		if _, err := Create(t.TempDir(), list, nil); err == nil {
			t.Errorf("%v: no error", list)
		}
	}
	if _, err := Open(t.TempDir()); err == nil || !strings.Contains(err.Error(), "is not a comparison's directory") {
		t.Errorf("an empty directory: %v", err)
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(`{"format":1,"entries":[{"title":"a","config":{"seed":1}}],"sha256":"` + checksum.Blank + `"}` + "\n"))
	f.Fuzz(func(t *testing.T, content []byte) {
		content = bytes.Clone(content)
		if at := bytes.LastIndex(content, []byte(`"sha256":"`)); at >= 0 && len(content) > at+80 { // as if it was not changed
			copy(content[at+len(`"sha256":"`):], checksum.Blank)
			if _, err := checksum.Fill(content, len(content)); err != nil {
				return
			}
		}
		r, err := parse(content)
		if err == nil && r.check() != nil {
			t.Fatal("a record that is refused was read")
		}
	})
}
