//go:build unix

package datasets

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// pipe makes a named pipe, which nobody writes to.
func pipe(t *testing.T, path ...string) string {
	t.Helper()
	name := filepath.Join(path...)
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(name, 0o644); err != nil {
		t.Skip("no named pipes here: ", err)
	}
	return name
}

// A named pipe instead of any of the user's files is an error that names it, and reading does not
// wait.
func TestNamedPipes(t *testing.T) {
	defer time.AfterFunc(time.Minute, func() { panic("a named pipe was waited for") }).Stop()
	root := flowers(t, 30, "train", "test")
	pipe(t, root, "train", "moss", "z.png")
	splits, err := Open(root, isolated(t))
	if err != nil {
		t.Fatal(err)
	}
	const problem = "it must be a regular file, got a named pipe"
	if got := splits.Train.Skipped; len(got) != 1 || !strings.HasPrefix(got[0], "train/moss/z.png: ") || !strings.HasSuffix(got[0], problem) {
		t.Errorf("skipped %q, want the named pipe", got)
	}
	_, err = ReadImages([]string{filepath.Join(root, "train", "moss", "z.png")}, Options{})
	wantError(t, err, "z.png: must have a readable image", "z.png: "+problem)

	idx := filepath.Join(t.TempDir(), "idx")
	pipe(t, idx, "train-images-idx3-ubyte")
	table := dots(t, "1.png")
	pipe(t, table, "labels.csv")
	for _, name := range []string{
		pipe(t, t.TempDir(), "a.npz"), pipe(t, t.TempDir(), "a.csv"), pipe(t, t.TempDir(), "a.csv.gz"), pipe(t, t.TempDir(), "a.tar.gz"),
		filepath.Dir(pipe(t, t.TempDir(), "dir", "train.csv")), table,
	} {
		_, err := Open(name, isolated(t))
		wantError(t, err, problem)
	}
	if _, err := Open(idx, isolated(t)); err == nil {
		t.Error("a named pipe for an IDX file: no error")
	}
}

// TestSparseImage: a file of 64 GB that begins like a PNG image is skipped by its size, and not
// searched for chunks.
func TestSparseImage(t *testing.T) {
	root := flowers(t, 30, "train", "test")
	path := filepath.Join(root, "train", "moss", "z.png")
	write(t, []byte("\x89PNG\r\n\x1a\n"), path)
	if err := os.Truncate(path, 64<<30); err != nil {
		t.Skip("this file system has no sparse files: ", err)
	}
	begin := time.Now()
	splits, err := Open(root, isolated(t))
	if err != nil {
		t.Fatal(err)
	}
	if got := splits.Train.Skipped; len(got) != 1 || !strings.HasPrefix(got[0], "train/moss/z.png: ") {
		t.Errorf("skipped %q, want the sparse file", got)
	}
	if took := time.Since(begin); took > 30*time.Second {
		t.Errorf("it took %v", took)
	}
}
