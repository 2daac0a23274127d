package journal

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pkg/errors"
)

type entry struct {
	Name string `json:"name"`
	N    int    `json:"n"`
}

// write makes a journal of n lines, reopened after each third.
func write(t testing.TB, n int) (path string, content []byte) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "a.jsonl")
	w, err := Create(path, nil)
	for i := range n {
		if err == nil && i%3 == 2 {
			if err = w.Close(); err == nil {
				var tail Tail
				if tail, err = Read(path, func([]byte) error { return nil }); err == nil {
					w, err = Append(path, tail)
				}
			}
		}
		if err == nil {
			err = w.Add(entry{fmt.Sprint("line ", i), i})
		}
	}
	if err == nil {
		err = w.Flush()
	}
	if err == nil {
		err = w.Sync()
	}
	if err == nil {
		err = w.Close()
	}
	if err == nil {
		content, err = os.ReadFile(path)
	}
	if err != nil {
		t.Fatal(err)
	}
	return path, content
}

// entries reads a journal's text.
func entries(t testing.TB, content []byte) (all []entry, tail Tail, err error) {
	t.Helper()
	tail, err = ReadFrom(bytes.NewReader(content), "a.jsonl", func(object []byte) error {
		var e entry
		err := json.Unmarshal(object, &e)
		all = append(all, e)
		return err
	})
	return all, tail, err
}

func TestRoundTrip(t *testing.T) {
	path, content := write(t, 8)
	all, tail, err := entries(t, content)
	if err != nil || len(all) != 8 || tail.Lines != 8 || tail.Torn || all[7] != (entry{"line 7", 7}) {
		t.Fatalf("%v, %+v (%v)", all, tail, err)
	}
	// Any reader of JSON lines reads it, and a rewritten journal has the same bytes.
	var line map[string]any
	if err := json.Unmarshal(bytes.Split(content, []byte("\n"))[3], &line); err != nil || line["n"] != 3.0 || line["crc"] == nil {
		t.Errorf("%v (%v)", line, err)
	}
	again, err := Rewrite(path, nil, func(add func(any) error) error {
		for _, e := range all {
			if err := add(e); err != nil {
				return err
			}
		}
		return nil
	})
	if rewritten, _ := os.ReadFile(path); err != nil || again != tail || !bytes.Equal(rewritten, content) {
		t.Errorf("rewritten: %q (%v)", rewritten, err)
	}
	if _, err := Read(path+".none", nil); !os.IsNotExist(errors.Cause(err)) {
		t.Errorf("no journal: %v", err)
	}
}

// A journal that is cut off has its first lines, and reports whether one is torn.
func TestCutAnywhere(t *testing.T) {
	_, content := write(t, 4)
	for n := range content {
		all, tail, err := entries(t, content[:n])
		whole := bytes.Count(content[:n], []byte("\n"))
		if n > 0 && content[n] == '\n' { // all but the line's end is there
			whole++
		}
		torn := n > 0 && content[n-1] != '\n'
		if err != nil || len(all) != whole || tail.Torn != torn {
			t.Fatalf("cut at %d: %d lines, %+v (%v), want %d, torn %t", n, len(all), tail, err, whole, torn)
		}
	}
}

func TestEveryBitCounts(t *testing.T) {
	_, content := write(t, 4)
	lines := bytes.SplitAfter(content, []byte("\n"))
	for at := range content {
		for bit := range 8 {
			content[at] ^= 1 << bit
			_, _, err := entries(t, content)
			line := fmt.Sprintf("line %d was changed", 1+bytes.Count(bytes.Join(lines, nil)[:at], []byte("\n")))
			if err == nil || !strings.Contains(err.Error(), "was changed") || !strings.Contains(err.Error(), line) && content[at]^1<<bit != '\n' {
				t.Fatalf("bit %d of byte %d was flipped: %v", bit, at, err)
			}
			content[at] ^= 1 << bit
		}
	}
	for name, lines := range map[string][][]byte{
		"removed": {lines[0], lines[2]}, "first removed": {lines[1]}, "swapped": {lines[1], lines[0]}, "twice": {lines[0], lines[0]},
		"put in": {lines[0], []byte("{}\n")}, "empty": {[]byte("\n")},
	} {
		if _, _, err := entries(t, bytes.Join(lines, nil)); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	if _, _, err := entries(t, []byte(strings.Repeat("x", longestLine+2))); err == nil {
		t.Error("a line without end: no error")
	}
}

func FuzzRead(f *testing.F) {
	_, content := write(f, 3)
	f.Add(content)
	f.Add(content[:len(content)-9])
	f.Add([]byte("{}\n"))
	f.Fuzz(func(t *testing.T, content []byte) {
		read := 0
		tail, err := passing(content, &read)
		if err == nil && tail.Lines != read {
			t.Fatalf("%d lines, passed on %d", tail.Lines, read)
		}
	})
}

func passing(content []byte, lines *int) (Tail, error) {
	return ReadFrom(bytes.NewReader(content), "a.jsonl", func([]byte) error { *lines++; return nil })
}
