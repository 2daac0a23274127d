package file

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/pkg/errors"
)

// names are the names in a folder.
func names(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, entry := range entries {
		names = append(names, entry.Name())
	}
	return names
}

func wantNames(t *testing.T, dir string, want ...string) {
	t.Helper()
	if got := names(t, dir); !slices.Equal(got, want) {
		t.Errorf("the folder holds %q, want %q", got, want)
	}
}

func wantContent(t *testing.T, path, want string) {
	t.Helper()
	if got, err := os.ReadFile(path); err != nil || string(got) != want {
		t.Errorf("%s holds %q (%v), want %q", path, got, err, want)
	}
}

func wantError(t *testing.T, err error, want string) {
	t.Helper()
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("error %v, want one with %q", err, want)
	}
}

func put(t *testing.T, path, content string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}

func TestWriteMakesAndReplaces(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "a.json")
	for _, content := range []string{"first", "", "a longer one", "short"} {
		if err := Write(path, []byte(content)); err != nil {
			t.Fatal(err)
		}
		wantContent(t, path, content)
		wantNames(t, dir, "a.json")
	}
	// The mode is an ordinary file's, whatever the umask.
	ordinary := filepath.Join(dir, "ordinary")
	put(t, ordinary, "")
	want, err := os.Stat(ordinary)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := os.Stat(path); err != nil || got.Mode() != want.Mode() {
		t.Errorf("mode %v (%v), want %v", got.Mode(), err, want.Mode())
	}
}

func TestWriteWithoutDir(t *testing.T) {
	t.Chdir(t.TempDir())
	if err := Write("bare", []byte("x")); err != nil {
		t.Fatal(err)
	}
	wantContent(t, "bare", "x")
	wantNames(t, ".", "bare")
}

func TestPendingTakesItsPlaceWithCommit(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "a")
	put(t, path, "old")
	p, err := Create(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{"new", " ", "content"} {
		if n, err := p.Write([]byte(part)); n != len(part) || err != nil {
			t.Fatalf("%d bytes are written of %q: %v", n, part, err)
		}
		wantContent(t, path, "old")
	}
	if err := p.Commit(); err != nil {
		t.Fatal(err)
	}
	wantContent(t, path, "new content")
	if err := p.Close(); err != nil {
		t.Error(err)
	}
	_, err = p.Write([]byte("more"))
	wantError(t, err, "committed or closed already")
	wantError(t, p.Commit(), "committed or closed already")
	wantContent(t, path, "new content")
	wantNames(t, dir, "a")
}

func TestCloseDropsWhatIsPending(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "a")
	put(t, path, "old")
	p, err := Create(path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.Write([]byte("new")); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	}
	wantError(t, p.Commit(), "committed or closed already")
	wantContent(t, path, "old")
	wantNames(t, dir, "a")
}

// A process that is suspended after it asked whether it may write changes nothing if another one
// sweeps the directory meanwhile.
func TestSweptWhileSuspended(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("open files cannot be removed")
	}
	dir := t.TempDir()
	path, older := filepath.Join(dir, "state"), filepath.Join(dir, "older")
	put(t, path, "newest")
	put(t, older, "before")
	suspended := func() error { return Sweep(dir) }
	wantError(t, WriteIf(path, []byte("late"), suspended), "file: commit ")
	p, err := Create(path)
	if err != nil {
		t.Fatal(err)
	}
	wantError(t, p.CommitKeeping(older, suspended), "file: commit ")
	wantError(t, WriteIf(path, []byte("late"), func() error { return errors.New("another writes here") }), "another writes here")
	wantNames(t, dir, "older", "state")
	wantContent(t, path, "newest")
	wantContent(t, older, "before")
}

// Without hard links, and when both files are the same already, the newest file becomes the older.
func TestCommitKeepingWithoutLinks(t *testing.T) {
	dir := t.TempDir()
	path, older := filepath.Join(dir, "state"), filepath.Join(dir, "older")
	commit := func(content string) {
		if err := commitKeeping(t, path, older, content, func() error { return nil }); err != nil {
			t.Fatal(err)
		}
	}
	put(t, path, "first")
	if err := os.Link(path, older); err != nil { // as a process that is killed between two renames leaves them
		t.Skip(err)
	}
	commit("second")
	wantNames(t, dir, "older", "state")
	wantContent(t, older, "first")

	end := Inject(func(call, _ string, _ int) (int, error) {
		if call == CallLink {
			return 0, syscall.ENOTSUP
		}
		return 0, nil
	})
	defer end()
	commit("third")
	wantNames(t, dir, "older", "state")
	wantContent(t, path, "third")
	wantContent(t, older, "second")
}

// commitKeeping writes a file with CommitKeeping.
func commitKeeping(t *testing.T, path, older, content string, may func() error) error {
	t.Helper()
	p, err := Create(path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.Write([]byte(content)); err != nil {
		t.Fatal(err)
	}
	return p.CommitKeeping(older, may)
}

// The last argument of CommitKeeping is called when the content is on the disk.
func TestCommitKeeping(t *testing.T) {
	dir := t.TempDir()
	path, older := filepath.Join(dir, "state"), filepath.Join(dir, "older")
	commit := func(content string, may error) error {
		return commitKeeping(t, path, older, content, func() error {
			if len(names(t, dir)) == 0 {
				t.Error("asked before the content is there")
			}
			return may
		})
	}
	for _, content := range []string{"first", "second"} {
		if err := commit(content, nil); err != nil {
			t.Fatal(err)
		}
	}
	wantError(t, commit("third", errors.New("another writes here")), "another writes here")
	wantNames(t, dir, "older", "state")
	wantContent(t, path, "second")
	wantContent(t, older, "first")
}

func TestPlacesThatCannotBeReplaced(t *testing.T) {
	dir := t.TempDir()
	taken := filepath.Join(dir, "folder")
	if err := os.Mkdir(taken, 0o755); err != nil {
		t.Fatal(err)
	}
	wantError(t, Write(taken, nil), "must be a file, got a directory")
	wantError(t, Write(filepath.Join(dir, "none", "a"), nil), "file: create ")
	if info, err := os.Lstat(os.DevNull); err == nil && info.Mode()&os.ModeDevice != 0 {
		wantError(t, Write(os.DevNull, nil), "must be a regular file")
	}
	wantNames(t, dir, "folder")

	// A folder that appears while the content is written stays as it is, and the content is
	// dropped.
	path := filepath.Join(dir, "late")
	p, err := Create(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Join(path, "inside"), 0o755); err != nil {
		t.Fatal(err)
	}
	wantError(t, p.Commit(), "file: commit ")
	wantNames(t, dir, "folder", "late")
	wantNames(t, path, "inside")
}

func TestSweepRemovesWhatWasLeft(t *testing.T) {
	dir := t.TempDir()
	others := []string{
		".hidden", ".partial", "..partial", ".a.partial", ".a.12.partial", ".a.12-.partial", ".a.-1.partial", ".a.x-1.partial",
		".a.12-1.partial.bak", "a.12-1.partial", "a.partial", "whole",
	}
	for _, name := range others {
		put(t, filepath.Join(dir, name), "keep")
	}
	below := filepath.Join(dir, ".b.12-1.partial")
	if err := os.Mkdir(below, 0o755); err != nil {
		t.Fatal(err)
	}
	put(t, filepath.Join(below, ".a.12-1.partial"), "keep")
	for _, base := range []string{"metrics.jsonl", ".dotted", "plain"} {
		p, err := Create(filepath.Join(dir, base))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := p.Write([]byte("half")); err != nil {
			t.Fatal(err)
		}
		p.file.Close() // as when the process is killed
	}
	if got, want := len(names(t, dir)), len(others)+1+3; got != want {
		t.Fatalf("%d names, want %d", got, want)
	}
	if err := Sweep(dir); err != nil {
		t.Fatal(err)
	}
	want := append(slices.Clone(others), ".b.12-1.partial")
	slices.Sort(want)
	wantNames(t, dir, want...)
	wantNames(t, below, ".a.12-1.partial")

	if err := Sweep(filepath.Join(dir, "none")); err != nil {
		t.Errorf("a folder that does not exist: %v", err)
	}
	wantError(t, Sweep(filepath.Join(dir, "whole")), "file: sweep ")
}

// A name that is taken is skipped, and the file with it stays.
func TestNamesThatAreTaken(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "a")
	next := filepath.Join(dir, fmt.Sprintf(".a.%d-%d.partial", os.Getpid(), created.Load()+1))
	put(t, next, "another process's")
	if err := Write(path, []byte("ours")); err != nil {
		t.Fatal(err)
	}
	wantContent(t, path, "ours")
	wantContent(t, next, "another process's")
}

// Several writers of one path: each is whole, and the last one stays.
func TestWritersAtATime(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "a")
	var writing sync.WaitGroup
	for writer := range 4 {
		writing.Go(func() {
			for range 5 {
				if err := Write(path, bytes.Repeat([]byte{byte('a' + writer)}, 10_000)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	writing.Wait()
	got, err := os.ReadFile(path)
	if err != nil || len(got) != 10_000 || strings.Trim(string(got), string(got[:1])) != "" {
		t.Errorf("%d bytes of several writers (%v)", len(got), err)
	}
	wantNames(t, dir, "a")
}
