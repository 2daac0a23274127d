package index

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pollen-ml/pollen/internal/checksum"
	"github.com/pollen-ml/pollen/internal/journal"
)

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func FuzzIndex(f *testing.F) {
	dir := f.TempDir()
	lines := []Line{
		{File: "manifest.json", Bytes: 10, Sum: checksum.Blank}, {File: "samples/chain00000-step000000001.safetensors", Bytes: 10, Sum: checksum.Blank},
		{File: "samples/chain00000-step000000002.safetensors", Lost: "missing"},
		{File: "samples/chain00000-step000000003.safetensors", Dropped: true},
	}
	_, err := Rewrite(dir, lines, nil)
	must(f, err)
	whole, err := os.ReadFile(filepath.Join(dir, File))
	must(f, err)
	f.Add(whole)
	f.Add(whole[:len(whole)-20])
	f.Add([]byte(`{"file":"../../etc/passwd"}` + "\n"))
	f.Fuzz(func(t *testing.T, content []byte) {
		leadsOut := func(name string) {
			if strings.Contains(name, "..") && !filepath.IsLocal(name) || filepath.IsAbs(name) {
				t.Fatalf("%q leads out of the folder", name)
			}
		}
		if x, err := parse(bytes.NewReader(content), File); err == nil {
			for _, name := range x.Names {
				leadsOut(name)
			}
		}
		for line := range bytes.Lines(content) { // as if their checksums were right
			if l, err := parseLine(line); err == nil {
				leadsOut(l.File)
			}
		}
	})
}

// An index whose lines are intact cannot name a file outside its run.
func TestIndexStaysInItsDir(t *testing.T) {
	for _, name := range []string{"", "..", "../a", "/etc/passwd", "samples/../../a", `samples\a`, "samples//a", "a/"} {
		dir := t.TempDir()
		_, err := journal.Rewrite(filepath.Join(dir, File), nil, func(add func(any) error) error {
			return add(Line{File: name, Sum: checksum.Blank})
		})
		must(t, err)
		if _, err := Read(dir); err == nil {
			t.Errorf("%q is accepted", name)
		}
	}
}

// An index that ends anywhere within its last line, as where a process was killed, can be appended
// to.
func TestAppendAfterCut(t *testing.T) {
	dir := t.TempDir()
	place := filepath.Join(dir, File)
	_, err := Rewrite(dir, []Line{{File: "a", Sum: checksum.Blank}, {File: "b", Sum: checksum.Blank}}, nil)
	must(t, err)
	whole, err := os.ReadFile(place)
	must(t, err)
	for n := bytes.IndexByte(whole, '\n') + 1; n <= len(whole); n++ {
		must(t, os.WriteFile(place, whole[:n], 0o644))
		x, err := Read(dir)
		must(t, err)
		to, err := x.Append(dir, nil)
		must(t, err)
		must(t, Add(to, Line{File: "c", Sum: checksum.Blank}))
		must(t, to.Close())
		again, err := Read(dir)
		if err != nil || len(again.Names) != len(x.Names)+1 {
			t.Fatalf("cut at %d of %d: %v, want one more than %v (%v)", n, len(whole), again, x.Names, err)
		}
	}
}
