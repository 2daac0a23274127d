package file

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/pkg/errors"
)

func TestRead(t *testing.T) {
	dir := t.TempDir()
	path, link := filepath.Join(dir, "a"), filepath.Join(dir, "link")
	put(t, path, "text")
	if err := os.Symlink(path, link); err != nil {
		t.Skip(err)
	}
	for _, path := range []string{path, link} {
		if content, err := Read(path, 4); err != nil || string(content) != "text" {
			t.Errorf("Read(%s) = %q, %v, want text", path, content, err)
		}
	}
	if content, err := Read(path, 3); !errors.As(err, new(*IrregularError)) {
		t.Errorf("Read of more than the limit = %q, %v, want IrregularError", content, err)
	}
	if _, err := Read(filepath.Join(dir, "nothing"), 4); !os.IsNotExist(errors.Cause(err)) {
		t.Errorf("Read of nothing: %v, want os.ErrNotExist", err)
	}
	if _, err := Read(dir, 4); !errors.As(err, new(*IrregularError)) {
		t.Errorf("Read of a directory: %v, want IrregularError", err)
	}
	sparse := filepath.Join(dir, "sparse")
	put(t, sparse, "")
	if err := os.Truncate(sparse, 20<<30); err != nil {
		t.Skip(err)
	}
	if _, err := Read(sparse, MaxJSON); !errors.As(err, new(*IrregularError)) {
		t.Errorf("Read of a sparse file: %v, want IrregularError", err)
	}
}

// A file that grows after its size was read is not read beyond the limit.
func TestReadGrowing(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a")
	put(t, path, "ab")
	opened, err := Open(path, 4)
	if err != nil {
		t.Fatal(err)
	}
	defer opened.Close()
	put(t, path, "abcdef")
	if content, err := ReadOpened(opened, 4); !errors.As(err, new(*IrregularError)) {
		t.Errorf("ReadOpened = %q, %v, want IrregularError", content, err)
	}
}

// A link at the path of an appended file would lead writes out of the directory.
func TestAppendRefusesLinks(t *testing.T) {
	dir := t.TempDir()
	path, outside := filepath.Join(dir, "a"), filepath.Join(dir, "outside")
	if err := os.Symlink(outside, path); err != nil {
		t.Skip(err)
	}
	for range 2 { // dangling, then not
		_, err := Append(path)
		wantError(t, err, "must be a regular file, got a symbolic link")
		put(t, outside, "kept")
	}
	wantContent(t, outside, "kept")
}
