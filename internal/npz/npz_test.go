package npz

import (
	"archive/zip"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The bytes are those that NumPy 2.4 writes in version 1.0 of its format.
func TestWrite(t *testing.T) {
	path := filepath.Join(t.TempDir(), "answers.npz")
	err := Write(path, Array{"probabilities", []int{1, 2, 3}, []float32{0.5, 0.25, 0.25, 0, 1, 0}}, Array{"weights", []int{1}, []float64{2}})
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{
		"probabilities.npy": "\x93NUMPY\x01\x00v\x00{'descr': '<f4', 'fortran_order': False, 'shape': (1, 2, 3), }" + strings.Repeat(" ", 55) +
			"\n\x00\x00\x00?\x00\x00\x80>\x00\x00\x80>\x00\x00\x00\x00\x00\x00\x80?\x00\x00\x00\x00",
		"weights.npy": "\x93NUMPY\x01\x00v\x00{'descr': '<f8', 'fortran_order': False, 'shape': (1,), }" + strings.Repeat(" ", 60) +
			"\n\x00\x00\x00\x00\x00\x00\x00@",
	}
	archive, err := zip.OpenReader(path)
	if err != nil {
		t.Fatal(err)
	}
	defer archive.Close()
	if len(archive.File) != len(want) {
		t.Errorf("%d files, want %d", len(archive.File), len(want))
	}
	for name, content := range want {
		got, err := fs.ReadFile(archive, name)
		if err != nil || string(got) != content {
			t.Errorf("%s is %q (%v), want %q", name, got, err, content)
		}
	}
}

// An array that contradicts itself leaves no file.
func TestWriteRefuses(t *testing.T) {
	path := filepath.Join(t.TempDir(), "answers.npz")
	for _, array := range []Array{{"a", []int{2}, []float32{1}}, {"a", []int{1}, []int{1}}} {
		if err := Write(path, array); err == nil {
			t.Errorf("%+v: no error", array)
		}
		if _, err := os.Stat(path); !os.IsNotExist(err) {
			t.Errorf("%+v: there is a file (%v)", array, err)
		}
	}
}
