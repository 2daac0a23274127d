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
// is a path from the root; a name that ends in .go, without a slash, is a file of the root.
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
			if _, err := os.Stat(filepath.Join(root, filepath.FromSlash(name))); err != nil {
				t.Errorf("%s: %s does not exist", path, name)
			}
		}
		if checked < 3 {
			t.Errorf("%s: checked %d names, want at least 3", path, checked)
		}
	}
}
