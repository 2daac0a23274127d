package doctest

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// root is the repository's root, relative to this package.
const root = "../.."

// page is a Markdown file.
type page struct {
	path string // relative to the root, with slashes
	text string
}

// pages reads all Markdown files of the repository.
func pages(t *testing.T) []page {
	t.Helper()
	var all []page
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := entry.Name()
		if entry.IsDir() && path != root && (strings.HasPrefix(name, ".") || name == "testdata" || name == "runs") {
			return filepath.SkipDir
		}
		if filepath.Ext(name) != ".md" {
			return nil
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		relative, err := filepath.Rel(root, path)
		all = append(all, page{filepath.ToSlash(relative), string(content)})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(all) < 10 {
		t.Fatalf("found %d pages, want at least 10", len(all))
	}
	return all
}

// read reads the page at path, relative to the root.
func read(t *testing.T, path string) page {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(path)))
	if err != nil {
		t.Fatal(err)
	}
	return page{path, string(content)}
}

// tableMarker begins a table that docs/records writes: it is indented like code but has no
// commands.
var tableMarker = regexp.MustCompile(`(?m)^<!-- table: .* -->\n\n(?:    .*\n)*`)

// scripts returns the page's shell code: its indented blocks and its fences marked sh or without a
// language. A block ends at the first line that is not indented, empty lines aside.
func (p page) scripts() []string {
	text := tableMarker.ReplaceAllString(p.text, "\n")
	var all []string
	var block []string
	language, fenced := "", false
	flush := func() {
		if code := strings.TrimSpace(strings.Join(block, "\n")); code != "" {
			all = append(all, code)
		}
		block = nil
	}
	afterBlank := true // an indented line continues a paragraph or a list unless a blank line precedes it
	for _, line := range strings.Split(text, "\n") {
		switch {
		case strings.HasPrefix(line, "```"):
			if fenced {
				flush()
			} else {
				language = strings.TrimPrefix(line, "```")
			}
			fenced = !fenced
		case fenced:
			if language == "" || language == "sh" {
				block = append(block, line)
			}
		case strings.HasPrefix(line, "    ") && (afterBlank || len(block) > 0):
			block = append(block, line[4:])
		case strings.TrimSpace(line) == "":
			if len(block) > 0 {
				block = append(block, "")
			}
		default:
			flush()
		}
		afterBlank = strings.TrimSpace(line) == ""
	}
	flush()
	return all
}

// commands returns the page's command lines: comments are removed, and lines that end in a
// backslash are joined with the next one.
func (p page) commands() []string {
	var all []string
	for _, script := range p.scripts() {
		joined := strings.ReplaceAll(script, "\\\n", " ")
		for _, line := range strings.Split(joined, "\n") {
			line, _, _ = strings.Cut(line, " #")
			if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
				all = append(all, line)
			}
		}
	}
	return all
}
