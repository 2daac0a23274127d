package bundle

import (
	"bytes"
	"compress/gzip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func file(stem, body string) File { return File{stem + ".ptx", FirstLine(stem) + body} }

// TestWriteAndRead: files come back in order of their names. A bundle with the same texts is not
// written again, however it is compressed; one with other texts is.
func TestWriteAndRead(t *testing.T) {
	path := filepath.Join(t.TempDir(), "kernels.ptx.gz")
	all := []File{file("b_sm80", "two\n"), file("a", "one\n")}
	read := func() []byte {
		t.Helper()
		content, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		return content
	}
	if err := Write(path, all); err != nil {
		t.Fatal(err)
	}
	if got, err := Read(read()); err != nil || !slices.Equal(got, []File{all[1], all[0]}) {
		t.Errorf("got %v, %v", got, err)
	}
	var stored bytes.Buffer
	writer, err := gzip.NewWriterLevel(&stored, gzip.NoCompression)
	if err != nil {
		t.Fatal(err)
	}
	writer.Write([]byte(all[1].Text + all[0].Text))
	writer.Close()
	if err := os.WriteFile(path, stored.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := Write(path, all); err != nil || !bytes.Equal(read(), stored.Bytes()) {
		t.Errorf("the same contents are written again: %v", err)
	}
	all[0].Text += "more\n"
	if err := Write(path, all); err != nil {
		t.Fatal(err)
	}
	if got, err := Read(read()); err != nil || !slices.Equal(got, []File{all[1], all[0]}) {
		t.Errorf("got %v, %v", got, err)
	}
}

// TestRefuses: invalid bundles are errors.
func TestRefuses(t *testing.T) {
	zip := func(text string) []byte {
		var b bytes.Buffer
		writer := gzip.NewWriter(&b)
		writer.Write([]byte(text))
		writer.Close()
		return b.Bytes()
	}
	whole := zip(FirstLine("a") + "one\n")
	for want, content := range map[string][]byte{
		"EOF":                      nil,
		"unexpected EOF":           whole[:len(whole)-4],
		"invalid header":           []byte("// Code generated, and not compressed"),
		"do not begin with a file": zip("one\n"),
		"must name its source":     zip(firstLine + "a\n"),
	} {
		if _, err := Read(content); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
	path := filepath.Join(t.TempDir(), "kernels.ptx.gz")
	if err := Write(path, []File{{"a.ptx", FirstLine("b")}}); err == nil {
		t.Error("a file with another one's first line is written")
	}
}
