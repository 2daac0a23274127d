package main

import (
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/bayes"
	"github.com/pollen-ml/pollen/internal/comparison"
)

func main() {
	if err := command(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func command(arguments []string) error {
	switch {
	case len(arguments) == 0:
		paths, err := documents()
		if err != nil {
			return err
		}
		for _, path := range paths {
			if err := rewrite(path); err != nil {
				return err
			}
		}
		return nil
	case len(arguments) == 1 && arguments[0] == "figures":
		return drawFigures(".")
	case arguments[0] == "add" && len(arguments) > 4:
		return add(arguments[1], arguments[2], arguments[3], arguments[4:])
	case arguments[0] == "print" && len(arguments) == 3:
		return addPrinted(arguments[1], arguments[2], os.Stdin)
	}
	return errors.New("records: usage: records, records figures, records add NAME COMMAND SCORES RUN..., or records print NAME COMMAND")
}

// documents returns the paths of the files that may have tables, relative to the repository's root.
func documents() ([]string, error) {
	paths := []string{"README.md", "examples/README.md"}
	err := filepath.WalkDir("docs", func(path string, _ fs.DirEntry, err error) error {
		if filepath.Ext(path) == ".md" {
			paths = append(paths, path)
		}
		return err
	})
	return paths, errors.Wrap(err, "records")
}

// absolute matches an absolute path, of which a record keeps only the last element.
var absolute = regexp.MustCompile(`"/[^"]*/([^"/]+)"`)

// add makes a record of the runs in dirs, with the scores in the file called scores.
func add(name, command, scores string, dirs []string) error {
	content, err := []byte("[]"), error(nil)
	if scores != "-" {
		if content, err = os.ReadFile(scores); err != nil {
			return errors.Wrap(err, "records")
		}
	}
	var scored []struct {
		Run        string `json:"run"`
		Assessment struct {
			In, Out struct{ Name string }
			Scores  map[string]float64
		} `json:"assessment"`
	}
	if err := json.Unmarshal(content, &scored); err != nil {
		return errors.Wrapf(err, "records: %s", scores)
	}
	r := Record{Command: command}
	for _, dir := range dirs {
		name, err := nameOf(dir)
		if err != nil {
			return err
		}
		one := Run{Name: name}
		for _, s := range scored {
			if filepath.Clean(s.Run) == filepath.Clean(dir) {
				one.Scores, r.In, r.Out = s.Assessment.Scores, s.Assessment.In.Name, s.Assessment.Out.Name
			}
		}
		if one.Scores == nil && scores != "-" {
			return errors.Errorf("records: %s has no scores of %s", scores, dir)
		}
		if one.Manifest, err = os.ReadFile(filepath.Join(dir, "manifest.json")); err != nil {
			return errors.Wrap(err, "records")
		}
		one.Manifest = absolute.ReplaceAll(one.Manifest, []byte(`"$1"`))
		opened, err := bayes.Open(dir)
		if err != nil {
			return err
		}
		if one.Diagnostics, err = opened.Diagnostics(); err != nil && !os.IsNotExist(errors.Cause(err)) {
			return err
		}
		if d := one.Diagnostics; d != nil {
			d.Trace, d.Weights, d.Losses = nil, nil, nil
		}
		if one.Fidelity, err = opened.Fidelity(); err != nil && !os.IsNotExist(errors.Cause(err)) {
			return err
		}
		r.Runs = append(r.Runs, one)
	}
	return r.write(name)
}

// addPrinted makes a record of the output of a command.
func addPrinted(name, command string, output io.Reader) error {
	content, err := io.ReadAll(output)
	if err != nil {
		return errors.Wrap(err, "records")
	}
	revision, err := exec.Command("git", "rev-parse", "HEAD").Output()
	if err != nil {
		return errors.Wrap(err, "records: git")
	}
	r := Record{Command: command, Revision: strings.TrimSpace(string(revision)), Printed: strings.Split(strings.TrimSpace(string(content)), "\n")}
	return r.write(name)
}

// marked matches a table. The groups are the words of its marker, and its indented lines.
var marked = regexp.MustCompile(`(?m)^<!-- table: (.*) -->\n\n((?:    .*\n)*)`)

// tables returns text with every table generated from its record.
func tables(text string) (string, error) {
	var failed error
	made := marked.ReplaceAllStringFunc(text, func(block string) string {
		words := strings.Fields(marked.FindStringSubmatch(block)[1])
		table, err := tableOf(words)
		if err != nil && failed == nil {
			failed = errors.WithMessagef(err, "records: table %q", words)
		}
		var lines strings.Builder
		fmt.Fprintf(&lines, "<!-- table: %s -->\n\n", strings.Join(words, " "))
		for _, line := range strings.Split(strings.TrimRight(table, "\n"), "\n") {
			fmt.Fprintln(&lines, strings.TrimRight("    "+line, " "))
		}
		return lines.String()
	})
	return made, failed
}

func rewrite(path string) error {
	content, err := os.ReadFile(path)
	if err != nil {
		return errors.Wrap(err, "records")
	}
	made, err := tables(string(content))
	if err != nil {
		return errors.WithMessage(err, path)
	}
	return errors.Wrap(os.WriteFile(path, []byte(made), 0o644), "records")
}

// nameOf returns the name of a run: the title that the program prints if the run is one of a
// comparison, else the name of its directory.
func nameOf(dir string) (string, error) {
	dir = filepath.Clean(dir)
	c, err := comparison.Open(filepath.Dir(dir))
	if errors.Is(err, os.ErrNotExist) {
		return filepath.Base(dir), nil
	}
	if err != nil {
		return "", err
	}
	for _, e := range c.Entries {
		if e.Dir() == filepath.Base(dir) {
			return e.Title, c.Close()
		}
	}
	return filepath.Base(dir), c.Close()
}
