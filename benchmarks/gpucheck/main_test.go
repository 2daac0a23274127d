package main

import (
	"debug/buildinfo"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestProgramsKnowTheirRevision: the record of a machine without git has the commit.
func TestProgramsKnowTheirRevision(t *testing.T) {
	head, err := exec.Command("git", "rev-parse", "HEAD").Output()
	if err != nil {
		t.Skipf("no git, or no repository: %v", err)
	}
	root, err := exec.Command("git", "rev-parse", "--show-toplevel").Output()
	if err != nil || !isDirectory(filepath.Join(strings.TrimSpace(string(root)), ".git")) {
		t.Skip("the go command looks for the repository in a directory .git, which a linked working tree does not have")
	}
	t.Setenv("GOFLAGS", "-buildvcs=false")
	path := filepath.Join(t.TempDir(), "benchmarks")
	if err := buildProgram(path, "benchmarks"); err != nil {
		t.Fatal(err)
	}
	info, err := buildinfo.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" {
			if want := strings.TrimSpace(string(head)); s.Value != want {
				t.Errorf("the program is of %s, want %s", s.Value, want)
			}
			return
		}
	}
	t.Errorf("the program names no revision: %v", info.Settings)
}
