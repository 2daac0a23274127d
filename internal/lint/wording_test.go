package lint

import (
	"bytes"
	"go/ast"
	"go/scanner"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// wording is one pattern that docs/style.md rules out.
type wording struct {
	pattern *regexp.Regexp
	instead string
}

// list has patterns, and one pattern that matches where any of them does: few lines match, and to
// try all patterns on the others takes seconds.
type list struct {
	any *regexp.Regexp
	all []wording
}

func listOf(all ...wording) list {
	var patterns []string
	for _, w := range all {
		patterns = append(patterns, "(?:"+w.pattern.String()+")")
	}
	return list{regexp.MustCompile(strings.Join(patterns, "|")), all}
}

// words are the patterns of comments, documents, messages and help texts. Patterns that need a
// reader, such as objects that speak, are in docs/style.md only.
var words = listOf(
	wording{regexp.MustCompile(`(?i)\b(that|so) many\b`), "the name of the parameter, or how many there are"},
	wording{regexp.MustCompile(`(?i)\balone\b`), "only, or without others"},
	wording{regexp.MustCompile(`(?i)\bbeside\b`), "next to, or compared with"},
	wording{regexp.MustCompile(`(?i)\bbut for\b`), "except"},
	wording{regexp.MustCompile(`(?i)\bin the place of\b`), "instead of"},
	wording{regexp.MustCompile(`(?i)\banew\b`), "again"},
	wording{regexp.MustCompile(`(?i)\b(go|goes|going|gone|went) on\b`), "continue, or resume"},
	wording{regexp.MustCompile(`(?i)\bfor good\b`), "permanently"},
	wording{regexp.MustCompile(`(?i)\bby (itself|themselves)\b`), "automatically"},
	wording{regexp.MustCompile(`(?i)\b(a|the) share of\b`), "a fraction of"},
	wording{regexp.MustCompile(`(?i)\bof one.s own\b`), "custom"},
	wording{regexp.MustCompile(`(?i)\bsuch (as have|as are|that have)\b`), "that have"},
)

// messages are the patterns of error messages.
var messages = listOf(
	wording{regexp.MustCompile(`\bwants\b`), `"X must be at least 1, got 3"`},
)

// names are the patterns of identifiers.
var names = listOf(
	wording{regexp.MustCompile(`^(most|Most)[A-Z]`), "max..."},
	wording{regexp.MustCompile(`^(least|Least)[A-Z]`), "min..."},
	wording{regexp.MustCompile(`^(folder|Folder)s?$`), "dir"},
)

// proseFiles are files other than Go's whose whole text or whose comments are prose.
var proseFiles = map[string]bool{
	".md": true, ".cu": true, ".cuh": true, ".cpp": true, ".h": true, ".html": true, ".js": true, ".sh": true, ".py": true,
}

func TestWording(t *testing.T) {
	for _, s := range sources(t) {
		if s.generated || s.dir == "internal/lint" {
			continue
		}
		checkGoWording(t, s)
	}
	tracked, err := exec.Command("git", "ls-files").Output()
	if err != nil {
		t.Skipf("not a clone of the repository: %v", err)
	}
	for _, path := range strings.Fields(string(tracked)) {
		if !proseFiles[filepath.Ext(path)] || path == "docs/style.md" || strings.Contains(path, "testdata/") {
			continue
		}
		content, err := os.ReadFile(path)
		if os.IsNotExist(err) {
			continue // deleted, not committed yet
		}
		if err != nil {
			t.Fatal(err)
		}
		for i, line := range bytes.Split(content, []byte("\n")) {
			report(t, path, i+1, string(line), words)
		}
	}
}

// checkGoWording checks the comments, string literals and declared names of a file.
func checkGoWording(t *testing.T, s source) {
	var tokens scanner.Scanner
	file := s.positions.AddFile(s.path, -1, len(s.content))
	tokens.Init(file, s.content, nil, scanner.ScanComments)
	for {
		at, kind, literal := tokens.Scan()
		switch kind {
		case token.EOF:
			ast.Inspect(s.file, func(n ast.Node) bool {
				if id, ok := n.(*ast.Ident); ok {
					report(t, s.path, s.positions.Position(id.Pos()).Line, id.Name, names)
				}
				return true
			})
			return
		case token.COMMENT:
			for i, line := range strings.Split(literal, "\n") {
				report(t, s.path, file.Line(at)+i, line, words)
			}
		case token.STRING:
			text, err := strconv.Unquote(literal)
			if err != nil {
				t.Fatal(err)
			}
			report(t, s.path, file.Line(at), text, words)
			report(t, s.path, file.Line(at), text, messages)
		}
	}
}

func report(t *testing.T, path string, line int, text string, patterns list) {
	if !patterns.any.MatchString(text) {
		return
	}
	for _, w := range patterns.all {
		if found := w.pattern.FindString(text); found != "" {
			t.Errorf("%s:%d: %q: write %s (docs/style.md)", path, line, found, w.instead)
		}
	}
}
