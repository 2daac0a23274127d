package graph_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
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
			t.Fatalf("line %d of the dump differs from %s (-update writes it anew): got\n%s\nwants\n%s", i+1, path, strings.Join(got[min(i, len(got)):], "\n"), line)
		}
	}
	if again, _ := newCNN(tensor.Float32).train(0.1).builder.Compile(); again.Dump() != p.Dump() {
		t.Error("the same graph compiles to another program the second time")
	}
}

var (
	dotNode = regexp.MustCompile(`^  (input|launch)(\d+) \[label="[^"]+"(, shape=ellipse)?\];$`)
	dotEdge = regexp.MustCompile(`^  ((?:input|launch)\d+) -> (launch\d+);$`)
)

func TestDOT(t *testing.T) {
	p, err := newCNN(tensor.Float32).train(0.1).builder.Compile()
	must(t, err)
	lines := strings.Split(strings.TrimSuffix(p.DOT(), "\n"), "\n")
	if lines[0] != "digraph program {" || lines[len(lines)-1] != "}" {
		t.Fatalf("begins with %q and ends with %q", lines[0], lines[len(lines)-1])
	}
	nodes, into := map[string]bool{}, map[string]int{}
	for _, line := range lines[2 : len(lines)-1] {
		if m := dotNode.FindStringSubmatch(line); m != nil {
			nodes[m[1]+m[2]] = true
		} else if m := dotEdge.FindStringSubmatch(line); m != nil {
			if !nodes[m[1]] || !nodes[m[2]] {
				t.Errorf("%q is about a node that has not come yet", line)
			}
			into[m[2]]++
		} else {
			t.Errorf("line %q is neither a node nor an edge", line)
		}
	}
	if want := len(p.Launches()) + len(p.Inputs()); len(nodes) != want {
		t.Errorf("%d nodes, wants one for each of %d launches and inputs", len(nodes), want)
	}
	for i, launch := range p.Launches() {
		if name := fmt.Sprint("launch", i); into[name] == 0 {
			t.Errorf("nothing leads to %s (%s)", name, launch.Kernel)
		}
	}
}
