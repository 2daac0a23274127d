package doctest

import (
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode"
)

var (
	link    = regexp.MustCompile(`\[[^\]]*\]\(([^)\s]+)\)`)
	heading = regexp.MustCompile(`(?m)^#{1,6} (.*)$`)
	fences  = regexp.MustCompile("(?ms)^```.*?^```$")
)

// TestLinks: every relative link of every page leads to a file or directory, and its fragment to a
// heading.
func TestLinks(t *testing.T) {
	all := pages(t)
	anchors := map[string]map[string]bool{}
	for _, p := range all {
		anchors[p.path] = p.anchors()
	}
	for _, p := range all {
		for _, m := range link.FindAllStringSubmatch(fences.ReplaceAllString(p.text, ""), -1) {
			target := m[1]
			if strings.Contains(target, "://") || strings.HasPrefix(target, "mailto:") {
				continue
			}
			file, fragment, _ := strings.Cut(target, "#")
			to := p.path
			if file != "" {
				to = path.Join(path.Dir(p.path), file)
			}
			if _, err := os.Stat(filepath.Join(root, filepath.FromSlash(to))); err != nil {
				t.Errorf("%s: link to %s: no such file", p.path, target)
				continue
			}
			if fragment != "" && !anchors[to][fragment] {
				t.Errorf("%s: link to %s: no such heading", p.path, target)
			}
		}
	}
}

// anchors returns the fragments that GitHub gives the page's headings.
func (p page) anchors() map[string]bool {
	all := map[string]bool{}
	for _, m := range heading.FindAllStringSubmatch(fences.ReplaceAllString(p.text, ""), -1) {
		all[anchor(m[1])] = true
	}
	return all
}

// anchor returns the fragment that GitHub gives a heading: in lower case, without punctuation,
// spaces as hyphens.
func anchor(title string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == ' ':
			return '-'
		case r == '-' || r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r):
			return unicode.ToLower(r)
		}
		return -1
	}, title)
}
