package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

const wrong = `package wrong

import (
	"os"
	"strings"
)

func unused() {}

func onlyTested() {}

func Wrong(name string) int {
	strings.ToUpper(name)
	var right *int
	if name == "" {
		right = new(int)
	}
	if right == nil {
		os.Exit(1)
	}
	return *right
}
`

const tested = `package wrong

import "testing"

func TestWrong(t *testing.T) {
	onlyTested()
	var right *int
	if t.Name() == "" {
		right = new(int)
	}
	if right == nil {
		t.Fatal("no name")
	}
	t.Logf("%d", *right, 1)
}
`

// TestCheck: check reports what staticcheck and go vet do, and nothing for functions that do not
// return, or objects that only tests use.
func TestCheck(t *testing.T) {
	dir := t.TempDir()
	for name, content := range map[string]string{"go.mod": "module wrong\n\ngo 1.26\n", "wrong.go": wrong, "wrong_test.go": tested} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		examine examination
		want    []string
	}{
		{static, []string{`wrong.go:13:2: ToUpper doesn't have side effects.*`, `wrong.go:8:6: func unused is unused`}},
		{vet, []string{`wrong_test.go:14:2: .*Logf call needs 1 arg but has 2 args`}},
	} {
		got, err := check(dir, "linux/amd64", c.examine)
		if err != nil {
			t.Fatal(err)
		}
		all := strings.ReplaceAll(strings.Join(got, "\n"), dir+string(filepath.Separator), "")
		if want := strings.Join(c.want, "\n"); !regexp.MustCompile("^" + want + "$").MatchString(all) {
			t.Errorf("got\n%s\nwant\n%s", all, want)
		}
	}
}
