package report

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/pollen-ml/pollen/evaluate"
)

func TestShortNames(t *testing.T) {
	for want, paths := range map[string]string{
		"1.png 2.png":                 "x/a/1.png x/b/2.png",
		"a/2.png b/2.png 3.png":       "x/a/2.png x/b/2.png x/b/3.png",
		"x/a/2.png y/a/2.png b/2.png": "x/a/2.png y/a/2.png y/b/2.png",
		"/a/2.png x/a/2.png":          "/a/2.png /x/a/2.png",
		"a/2.png 2.png":               "a/2.png 2.png",
		"x/1.png x/1.png":             "x/1.png x/1.png",
		"":                            "",
	} {
		given := strings.Fields(filepath.FromSlash(paths))
		if got := ShortNames(given); !slices.Equal(got, strings.Fields(filepath.FromSlash(want))) {
			t.Errorf("%s: got %q, want %s", paths, got, want)
		}
	}
}

// An image without a label is called by its name, where it has one.
func TestTileNames(t *testing.T) {
	p, err := evaluate.NewPredictions("roses", []float64{1, 0, 0, 1}, nil, 2)
	if err != nil {
		t.Fatal(err)
	}
	s := Subject{Assessment: &evaluate.Assessment{Case: evaluate.Case{In: p}}}
	s.InImages = &Images{Pixels: []byte{1, 2}, Channels: 1, Height: 1, Width: 1}
	if got := tileOf([]Subject{s}, Subject.in, s.InImages, 1).Title; got != "number 2" {
		t.Errorf("title %q", got)
	}
	s.InImages.Names = []string{"a/1.png", "b/1.png"}
	if got := tileOf([]Subject{s}, Subject.in, s.InImages, 1).Title; got != "b/1.png" {
		t.Errorf("title %q", got)
	}
}
