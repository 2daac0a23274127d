package main

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/pollen-ml/pollen/internal/testenv"
)

// packedOnce is a packed directory that several tests share; packing takes a minute.
var packedOnce struct {
	sync.Once
	dir string
	err error
}

func TestMain(m *testing.M) {
	testenv.InMemory()
	code := m.Run()
	if packedOnce.dir != "" {
		os.RemoveAll(packedOnce.dir)
	}
	os.Exit(code)
}

// packed packs the check, without the emulated GPU.
func packed(t *testing.T) string {
	t.Helper()
	testenv.NeedsAll(t, "packing takes a minute")
	packedOnce.Do(func() {
		if packedOnce.dir, packedOnce.err = os.MkdirTemp("", "gpucheck"); packedOnce.err == nil {
			packedOnce.err = packInto(packedOnce.dir, false)
		}
	})
	if packedOnce.err != nil {
		t.Fatal(packedOnce.err)
	}
	return packedOnce.dir
}

// Limits of what can be sent to a machine.
const (
	maxOfArchive = 40_000_000
	maxToSend    = 60 << 20
)

// TestArchiveIsSmall: the archive can be sent to a machine, also with the repository's files.
func TestArchiveIsSmall(t *testing.T) {
	if _, err := exec.LookPath("xz"); err != nil {
		t.Skip(err)
	}
	to := filepath.Join(t.TempDir(), "gpu.tar.xz")
	if err := archive(packed(t), to); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(to)
	if err != nil {
		t.Fatal(err)
	}
	size := info.Size()
	t.Logf("the archive has %.1f MB", float64(size)/1e6)
	if size > maxOfArchive {
		t.Errorf("the archive has %d bytes, the most is %d", size, maxOfArchive)
	}
	out, err := exec.Command("tar", "-tf", to).Output()
	if err != nil || !strings.Contains(string(out), "\ngpu/gpucheck\n") {
		t.Errorf("the archive has %s, %v", out, err)
	}
	root, err := exec.Command("git", "rev-parse", "--show-toplevel").Output()
	if err != nil {
		t.Skipf("no git, or no repository: %v", err)
	}
	tree := treeSize(t, strings.TrimSpace(string(root)))
	t.Logf("the repository's files have %.1f MB", float64(tree)/1e6)
	if all := size + tree; all > maxToSend {
		t.Errorf("archive and repository have %d bytes, the most is %d", all, maxToSend)
	}
}

// treeSize returns the size of a repository's tracked files, plus those in the directory shared, if
// there is one.
func treeSize(t *testing.T, root string) (size int64) {
	t.Helper()
	out, err := exec.Command("git", "-C", root, "ls-files", "-z").Output()
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range strings.Split(strings.TrimSuffix(string(out), "\x00"), "\x00") {
		if info, err := os.Lstat(filepath.Join(root, name)); err == nil {
			size += info.Size()
		}
	}
	if shared := filepath.Join(root, "shared"); isDirectory(shared) {
		if err := filepath.WalkDir(shared, func(_ string, entry fs.DirEntry, err error) error {
			if err == nil && entry.Type().IsRegular() {
				var info fs.FileInfo
				if info, err = entry.Info(); err == nil {
					size += info.Size()
				}
			}
			return err
		}); err != nil {
			t.Fatal(err)
		}
	}
	return size
}

func isDirectory(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}
