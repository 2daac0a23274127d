package doctest

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// code matches inline code: one word of letters, digits and punctuation of paths.
var code = regexp.MustCompile("`([A-Za-z0-9_./-]+)`")

// TestPaths: the files and directories that the contributors' pages name exist. A name with a slash
// is a path from the root; a name that ends in .go, without a slash, is a file of package bayes.
func TestPaths(t *testing.T) {
	for _, path := range []string{"ARCHITECTURE.md", "CONTRIBUTING.md", "docs/testing.md"} {
		p := read(t, path)
		checked := 0
		for _, m := range code.FindAllStringSubmatch(p.text, -1) {
			name := m[1]
			first, _, slash := strings.Cut(name, "/")
			if !slash && !strings.HasSuffix(name, ".go") || strings.Contains(first, ".") && first != "." && slash && !strings.HasPrefix(first, ".ci") {
				continue
			}
			if _, err := os.Stat(filepath.Join(root, first)); slash && err != nil {
				continue // a path in an import, a run's directory or an archive
			}
			checked++
			if !slash {
				name = "bayes/" + name
			}
			if _, err := os.Stat(filepath.Join(root, filepath.FromSlash(name))); err != nil {
				t.Errorf("%s: %s does not exist", path, name)
			}
		}
		if checked < 3 {
			t.Errorf("%s: checked %d names, want at least 3", path, checked)
		}
	}
}

// TestPackages: commands that install, get, run or test packages name packages of this module.
func TestPackages(t *testing.T) {
	content, err := os.ReadFile(filepath.Join(root, "go.mod"))
	if err != nil {
		t.Fatal(err)
	}
	module := strings.TrimSpace(strings.TrimPrefix(strings.SplitN(string(content), "\n", 2)[0], "module "))
	checked := 0
	for _, p := range pages(t) {
		for _, line := range p.commands() {
			words := strings.Fields(line)
			if words[0] != "go" {
				continue
			}
			for _, word := range words[1:] {
				name, _, _ := strings.Cut(word, "@")
				switch {
				case strings.HasPrefix(name, module+"/"):
					name = strings.TrimPrefix(name, module+"/")
				case !strings.HasPrefix(name, "./") || name == "./..." || strings.Contains(line, "-C "):
					continue
				}
				checked++
				if _, err := os.Stat(filepath.Join(root, strings.TrimSuffix(name, "/..."))); err != nil {
					t.Errorf("%s: %q: no package %s", p.path, line, word)
				}
			}
		}
	}
	if readme := read(t, "README.md").text; !strings.Contains(readme, "git clone https://"+module) {
		t.Errorf("README.md does not clone %s", module)
	}
	if checked < 20 {
		t.Errorf("checked %d packages, want at least 20", checked)
	}
}
