package graph_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pollen-ml/pollen/tensor"
)

// TestDump compares the program of a small network and its updates with testdata/cnn.dump. After an
// intended change, run it with -update and read the difference.
func TestDump(t *testing.T) {
	p, err := newCNN(tensor.Float32).train(0.1).builder.Compile()
	must(t, err)
	path := filepath.Join("testdata", "cnn.dump")
	if *updateGolden {
		must(t, os.WriteFile(path, []byte(p.Dump()), 0o644))
	}
	want, err := os.ReadFile(path)
	must(t, err)
	got := strings.Split(p.Dump(), "\n")
	for i, line := range strings.Split(string(want), "\n") {
		if i >= len(got) || got[i] != line {
			t.Fatalf("line %d of the dump differs from %s (-update writes it again): got\n%s\nwant\n%s", i+1, path, strings.Join(got[min(i, len(got)):], "\n"), line)
		}
	}
	if again, _ := newCNN(tensor.Float32).train(0.1).builder.Compile(); again.Dump() != p.Dump() {
		t.Error("the same graph compiles to another program the second time")
	}
}
