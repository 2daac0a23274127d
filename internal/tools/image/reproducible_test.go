package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestReproducible: two copies of the sources, in different directories, give programs and images
// of the same bytes. With POLLEN_TEST_ALL=1 the second is compiled in full, without the cache of
// the first, which takes minutes.
func TestReproducible(t *testing.T) {
	var programs, images [2][]byte
	for i, name := range []string{"first", "second/elsewhere"} {
		dir := filepath.Join(t.TempDir(), filepath.FromSlash(name))
		copySources(t, dir)
		build := exec.Command("go", "build", "-trimpath", "-buildvcs=false", "-o", "pollen", "./cmd/pollen")
		build.Dir, build.Env = dir, append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux", "GOARCH=amd64", "GOFLAGS=", "GOAMD64=v1")
		if i == 1 && os.Getenv("POLLEN_TEST_ALL") != "" {
			build.Env = append(build.Env, "GOCACHE="+t.TempDir())
		}
		if out, err := build.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		program, archive := filepath.Join(dir, "pollen"), filepath.Join(dir, "pollen.tar")
		if err := run(program, "pollen:1", archive); err != nil {
			t.Fatal(err)
		}
		for path, to := range map[string]*[]byte{program: &programs[i], archive: &images[i]} {
			content, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			*to = content
		}
		if bytes.Contains(programs[i], []byte(dir)) {
			t.Errorf("the program has the directory %s in it", dir)
		}
	}
	if !bytes.Equal(programs[0], programs[1]) {
		t.Error("the programs differ")
	}
	if !bytes.Equal(images[0], images[1]) {
		t.Error("the images differ")
	}
}

// copySources copies the files of the repository that git knows.
func copySources(t *testing.T, to string) {
	t.Helper()
	list := exec.Command("git", "ls-files", "-z")
	list.Dir = "../../.."
	out, err := list.Output()
	if err != nil {
		t.Skipf("not a clone of the repository: %v", err)
	}
	for _, name := range strings.Split(strings.TrimSuffix(string(out), "\x00"), "\x00") {
		content, err := os.ReadFile(filepath.Join("../../..", filepath.FromSlash(name)))
		if os.IsNotExist(err) {
			continue // deleted, not committed yet
		}
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(to, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, content, 0o644); err != nil {
			t.Fatal(err)
		}
	}
}
