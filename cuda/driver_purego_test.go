//go:build linux && !cu

package cuda

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestLibrariesThatAreNoDriver opens a missing library, one that is not a driver, and a driver that
// is too old for CUDA graphs.
func TestLibrariesThatAreNoDriver(t *testing.T) {
	t.Setenv(DriverVariable, "testdata/none.so")
	for path, wants := range map[string][]string{
		"testdata/gone.so": {"no driver library testdata/gone.so (from Options.Driver)"},
		"":                 {"no driver library testdata/none.so (from " + DriverVariable + ")"},
		"libc.so.6":        {"driver library libc.so.6", "it is no CUDA driver"},
	} {
		wantError(t, path, wants)
	}
	compiler, err := exec.LookPath("clang-19")
	if err != nil {
		if compiler, err = exec.LookPath("cc"); err != nil {
			t.Skip("no C compiler to make an old driver with")
		}
	}
	dir := t.TempDir()
	source, old := filepath.Join(dir, "old.c"), filepath.Join(dir, "old.so")
	if err := os.WriteFile(source, []byte("int cuDriverGetVersion(int *v) { *v = 9020; return 0; }\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command(compiler, "-shared", "-fPIC", "-o", old, source).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	wantError(t, old, []string{"it has no cu", "it supports CUDA 9.2, but the kernels need 11.8"})
}

func wantError(t *testing.T, path string, wants []string) {
	t.Helper()
	_, err := Open(Options{Driver: path})
	for _, text := range wants {
		if err == nil || !strings.Contains(err.Error(), text) {
			t.Errorf("library %q: want %q, got %v", path, text, err)
		}
	}
}
