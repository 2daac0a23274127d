package index

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/internal/checksum"
	"github.com/pollen-ml/pollen/internal/file"
	"github.com/pollen-ml/pollen/internal/journal"
)

// File is the journal's name.
const File = "index.jsonl"

// Line lists a file. The last line of a file's name counts, and if both have checksums, the line
// before it as well: a file that is replaced is listed before it is in place.
type Line struct {
	File  string `json:"file"` // relative to the run's directory, with slashes
	Bytes int    `json:"bytes,omitempty"`
	Sum   string `json:"sha256,omitempty"` // the file's checksum
	Lost  string `json:"lost,omitempty"`   // why the run continued without the file

	Dropped bool `json:"dropped,omitempty"` // it was removed because the run keeps no more samples
}

// check refuses lines that no run writes, such as names of files outside its directory.
func (l Line) check() error {
	if !filepath.IsLocal(filepath.FromSlash(l.File)) || path.Clean(l.File) != l.File || strings.Contains(l.File, `\`) {
		return errors.Errorf("%q is not a file of a run", l.File)
	}
	given := 0
	for _, is := range []bool{l.Sum != "", l.Lost != "", l.Dropped} {
		if is {
			given++
		}
	}
	if given != 1 || l.Sum != "" && len(l.Sum) != len(checksum.Blank) || l.Bytes < 0 {
		return errors.Errorf("%s: must have a checksum or why the file is missing, got checksum %q, lost %q, dropped %t, %d bytes",
			l.File, l.Sum, l.Lost, l.Dropped, l.Bytes)
	}
	return nil
}

// Index is a run's index, as read. The zero value lists nothing.
type Index struct {
	Lines map[string]Line // by name
	Names []string        // in the order in which they were first listed
	Tail  journal.Tail

	earlier map[string]Line // the lines before the last, of files that were replaced
}

func (x *Index) add(l Line) {
	last, known := x.Lines[l.File]
	if !known {
		x.Names = append(x.Names, l.File)
	}
	if last.Sum != "" && l.Sum != "" {
		x.earlier[l.File] = last
	}
	x.Lines[l.File] = l
}

// LinesOf returns the lines of a file that count, the last one last.
func (x *Index) LinesOf(name string) []Line {
	var lines []Line
	for _, of := range []map[string]Line{x.earlier, x.Lines} {
		if line, listed := of[name]; listed {
			lines = append(lines, line)
		}
	}
	return lines
}

// Lists reports whether a file that has a checksum is one that the index lists by that name.
func (x *Index) Lists(name, sum string) bool {
	return slices.ContainsFunc(x.LinesOf(name), func(l Line) bool { return l.Sum == sum })
}

// Read reads the index of the run in dir, except for a torn last line, which a killed process
// leaves.
func Read(dir string) (*Index, error) {
	place := filepath.Join(dir, File)
	opened, err := file.Open(place, file.MaxJournal)
	if os.IsNotExist(errors.Cause(err)) {
		return nil, errors.New("there is no such file")
	}
	if err != nil {
		return nil, errors.WithStack(err)
	}
	defer opened.Close()
	return parse(opened, place)
}

func parse(from io.Reader, place string) (*Index, error) {
	x := &Index{Lines: map[string]Line{}, earlier: map[string]Line{}}
	var err error
	x.Tail, err = journal.ReadFrom(from, place, func(object []byte) error {
		l, err := parseLine(object)
		if err == nil {
			x.add(l)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return x, nil
}

func parseLine(object []byte) (l Line, err error) {
	if err := json.Unmarshal(object, &l); err != nil {
		return l, errors.Wrap(err, "pollen: index")
	}
	return l, l.check()
}

// Append opens an index that was read, to list more files.
func (x *Index) Append(dir string, may func() error) (to *journal.Writer, err error) {
	tail := x.Tail
	if tail.Torn {
		var lines []Line
		for _, name := range x.Names {
			lines = append(lines, x.LinesOf(name)...)
		}
		if tail, err = Rewrite(dir, lines, may); err != nil {
			return nil, err
		}
	}
	to, err = journal.Append(filepath.Join(dir, File), tail)
	return to, errors.Wrap(err, "pollen: index")
}

// Rewrite replaces the index. It calls may as file.WriteIf does.
func Rewrite(dir string, lines []Line, may func() error) (journal.Tail, error) {
	tail, err := journal.Rewrite(filepath.Join(dir, File), may, func(add func(any) error) error {
		for _, l := range lines {
			if err := add(l); err != nil {
				return err
			}
		}
		return nil
	})
	return tail, errors.Wrap(err, "pollen: index")
}

// Add lists files and flushes: the lines outlive the process, but not a power failure before Sync.
func Add(to *journal.Writer, lines ...Line) error {
	for _, l := range lines {
		if err := to.Add(l); err != nil {
			return errors.Wrap(err, "pollen: index")
		}
	}
	return errors.Wrap(to.Flush(), "pollen: index")
}

// OfJSON returns the line of a JSON file that has a checksum.
func OfJSON(dir, name string) (Line, error) {
	content, err := file.Read(filepath.Join(dir, filepath.FromSlash(name)), file.MaxJSON)
	if err != nil {
		return Line{}, errors.Wrap(err, "pollen: index")
	}
	sum, err := checksum.Check(content, len(content))
	return Line{File: name, Bytes: len(content), Sum: sum}, err
}

// OfContent returns the line of a file that contains no checksum, with the checksum of its whole
// content.
func OfContent(name string, content []byte) Line {
	return Line{File: name, Bytes: len(content), Sum: fmt.Sprintf("%x", sha256.Sum256(content))}
}
