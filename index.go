package pollen

import (
	"encoding/json"
	"io"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/internal/journal"
	"github.com/pollen-ml/pollen/internal/seal"
	"github.com/pollen-ml/pollen/samples"
)

// indexFile is a journal of the files that a run has: a file that it lists was on the disk before.
const indexFile = "index.jsonl"

// indexLine lists a file. The last line of a file's name counts.
type indexLine struct {
	File  string `json:"file"` // in the run's folder, with slashes
	Bytes int    `json:"bytes,omitempty"`
	Sum   string `json:"sha256,omitempty"` // the file's seal
	Lost  string `json:"lost,omitempty"`   // why the run went on without the file

	Dropped bool `json:"dropped,omitempty"` // it went to keep no more than Spec.Keep
}

// check refuses what no run writes: no name leads out of the folder.
func (l indexLine) check() error {
	if !filepath.IsLocal(filepath.FromSlash(l.File)) || path.Clean(l.File) != l.File || strings.Contains(l.File, `\`) {
		return errors.Errorf("%q is no file of a run", l.File)
	}
	said := 0
	for _, is := range []bool{l.Sum != "", l.Lost != "", l.Dropped} {
		if is {
			said++
		}
	}
	if said != 1 || l.Sum != "" && len(l.Sum) != len(seal.Blank) || l.Bytes < 0 {
		return errors.Errorf("%s: checksum %q, lost %q, dropped %t, %d bytes, wants a checksum or why it is not there", l.File, l.Sum, l.Lost, l.Dropped, l.Bytes)
	}
	return nil
}

// index is a run's index, as read.
type index struct {
	lines map[string]indexLine
	names []string // in the order in which they were first listed
	tail  journal.Tail
}

func (x *index) add(l indexLine) {
	if _, known := x.lines[l.File]; !known {
		x.names = append(x.names, l.File)
	}
	x.lines[l.File] = l
}

// readIndex reads a run's index. A torn last line, of a process that was killed, is left out.
func readIndex(folder string) (*index, error) {
	place := filepath.Join(folder, indexFile)
	opened, err := os.Open(place)
	if os.IsNotExist(err) {
		return nil, damaged(place, errors.New("there is no such file"))
	}
	if err != nil {
		return nil, damaged(place, err)
	}
	defer opened.Close()
	x, err := parseIndex(opened, place)
	if err != nil {
		return nil, damaged(place, err)
	}
	return x, nil
}

func parseIndex(from io.Reader, place string) (*index, error) {
	x := &index{lines: map[string]indexLine{}}
	var err error
	x.tail, err = journal.ReadFrom(from, place, func(object []byte) error {
		l, err := parseIndexLine(object)
		if err == nil {
			x.add(l)
		}
		return err
	})
	return x, err
}

func parseIndexLine(object []byte) (l indexLine, err error) {
	if err := json.Unmarshal(object, &l); err != nil {
		return l, errors.Wrap(err, "index")
	}
	return l, l.check()
}

// openIndex opens a run's index to list more files.
func openIndex(folder string) (*journal.Writer, error) {
	x, err := readIndex(folder)
	if err != nil {
		return nil, err
	}
	tail := x.tail
	if tail.Torn {
		var lines []indexLine
		for _, name := range x.names {
			lines = append(lines, x.lines[name])
		}
		if tail, err = rewriteIndex(folder, lines); err != nil {
			return nil, err
		}
	}
	return journal.Append(filepath.Join(folder, indexFile), tail)
}

// rewriteIndex replaces the index.
func rewriteIndex(folder string, lines []indexLine) (journal.Tail, error) {
	tail, err := journal.Rewrite(filepath.Join(folder, indexFile), func(add func(any) error) error {
		for _, l := range lines {
			if err := add(l); err != nil {
				return err
			}
		}
		return nil
	})
	return tail, errors.Wrap(err, "pollen: index")
}

// lineOf is the line of a sealed text file.
func lineOf(folder, name string) (indexLine, error) {
	content, err := os.ReadFile(filepath.Join(folder, filepath.FromSlash(name)))
	if err != nil {
		return indexLine{}, errors.Wrap(err, "pollen: index")
	}
	sum, err := seal.Check(content, len(content))
	if err != nil {
		return indexLine{}, damaged(filepath.Join(folder, name), err)
	}
	return indexLine{File: name, Bytes: len(content), Sum: sum}, nil
}

// list adds lines to the index, which then outlive the process.
func list(to *journal.Writer, lines ...indexLine) error {
	if to == nil { // an older run, which has no index
		return nil
	}
	for _, l := range lines {
		if err := to.Add(l); err != nil {
			return errors.Wrap(err, "pollen: index")
		}
	}
	return errors.Wrap(to.Flush(), "pollen: index")
}

// linesOf are the lines of samples in a folder of a run.
func linesOf(folder string, files []samples.File) []indexLine {
	lines := make([]indexLine, len(files))
	for i, f := range files {
		lines[i] = indexLine{File: path.Join(folder, f.Name), Bytes: f.Bytes, Sum: f.Sum}
	}
	return lines
}

// writeListed writes a file of the run, and lists it.
func writeListed(to *journal.Writer, folder, name string, value any, indent string) error {
	if err := writeJSON(folder, name, value, indent); err != nil {
		return err
	}
	line, err := lineOf(folder, name)
	if err != nil {
		return err
	}
	return list(to, line)
}
