package pollen

import (
	"bytes"
	"os/exec"
	"testing"
)

// Limits of size, and the exceptions with their reasons. Files are those without tests; pages are
// what "go doc -all" prints.
const (
	mostFiles   = 40
	longestPage = 400
	mostCommand = 2500 // lines of cmd/train
)

// longPages may be above longestPage: up to a limit of their own, or to one for each of their
// types, where these are looked up by name.
var longPages = map[string]struct {
	most, each int
	reason     string
}{
	"graph/op": {0, 21, "a page for each op"},
	"langevin": {9, 31, "formula, source and bias of each sampler, with posterior and plan; a package for priors would cost names at each use"},
	".":        {825, 0, "the library's whole surface: specification, run, manifest, integrity, progress, answers, devices"},
}

func TestPackagesAreSmall(t *testing.T) {
	files, pages, command := map[string]int{}, map[string]bool{}, 0
	for _, s := range sources(t) {
		if s.test {
			continue
		}
		files[s.folder]++
		if s.file.Name.Name != "main" && !under(s.folder, []string{"internal"}) {
			pages[s.folder] = true
		}
		if s.folder == "cmd/train" {
			command += bytes.Count(s.content, []byte("\n"))
		}
	}
	for folder, n := range files {
		if n > mostFiles {
			t.Errorf("%s has %d files: at most %d; divide it", folder, n, mostFiles)
		}
	}
	if command > mostCommand {
		t.Errorf("cmd/train has %d lines: at most %d; what a Go program could want belongs into the library", command, mostCommand)
	}
	for folder := range pages {
		out, err := exec.Command("go", "doc", "-all", "./"+folder).Output()
		if err != nil {
			t.Fatalf("go doc %s: %v", folder, err)
		}
		most := longestPage
		if long, ok := longPages[folder]; ok {
			most = long.most + long.each*bytes.Count(out, []byte("\ntype "))
		}
		if lines := bytes.Count(out, []byte("\n")); lines > most {
			t.Errorf("go doc -all of %s has %d lines: at most %d; say it shorter, or divide the package", folder, lines, most)
		}
	}
}
