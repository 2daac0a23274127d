package main

import (
	"strings"
	"testing"

	"github.com/pkg/errors"
)

// ticking returns a function that returns the texts of /proc/stat one after the other.
func ticking(texts ...string) func() ([]byte, error) {
	return func() ([]byte, error) {
		if len(texts) == 0 {
			return nil, errors.New("no such file")
		}
		text := texts[0]
		texts = texts[1:]
		return []byte(text), nil
	}
}

func TestQuiet(t *testing.T) {
	const before = "cpu  100 0 50 1000 10 0 0 0 0 0\ncpu0 1 2 3\n"
	for _, c := range []struct{ name, after, wants string }{
		{"at rest", "cpu  101 0 51 1190 18 0 0 0 0 0\n", ""},
		{"waiting for a disk", "cpu  100 0 50 1000 210 0 0 0 0 0\n", ""},
		{"a program of another", "cpu  110 0 50 1190 10 0 0 0 0 0\n", "other programs take 5.0 %"},
		{"a program of low priority", "cpu  100 200 50 1000 10 0 0 0 0 0\n", "other programs take 100.0 %"},
		{"another guest of the host", "cpu  100 0 50 1100 10 0 0 100 0 0\n", "other programs take 50.0 %"},
		{"no time has passed", before, "other programs take"},
		{"another system", "", "must begin with"},
		{"short", "cpu 1 2 3\n", "must begin with"},
		{"no numbers", "cpu a b c d e f g h\n", "invalid syntax"},
	} {
		err := quietBy(ticking(before, c.after), 0)
		if c.wants == "" && err != nil || c.wants != "" && (err == nil || !strings.Contains(err.Error(), c.wants)) {
			t.Errorf("%s: got %v, want %q in the error, or none if that is empty", c.name, err, c.wants)
		}
	}
	if err := quietBy(ticking(before), 0); err == nil {
		t.Error("what cannot be read is no error")
	}
}
