package main

import (
	"path/filepath"
	"testing"

	"github.com/pollen-ml/pollen/internal/testenv"
)

// TestFaults runs a short form of the command. By default it runs only the flips, and fewer of
// them.
func TestFaults(t *testing.T) {
	sizes := short
	if !testenv.All(t) {
		sizes.flips = 60
	}
	h := &harness{sizes: sizes, ctx: t.Context(), work: t.TempDir(), report: t.Logf}
	if err := h.build(); err != nil {
		t.Fatal(err)
	}
	for _, s := range stages {
		if s.name != "flips" && !testenv.All(t) {
			continue // kills, full disks and second writers take half a minute
		}
		t.Run(s.name, func(t *testing.T) {
			h.report, h.failures = t.Logf, nil
			if err := s.run(h); err != nil {
				t.Fatal(err)
			}
			for _, failure := range h.failures {
				t.Error(failure)
			}
		})
	}
}

// Each program has its own directory within a relative one, and finds it from everywhere.
func TestNewWork(t *testing.T) {
	t.Chdir(t.TempDir())
	first, err := newWork("work")
	if err != nil {
		t.Fatal(err)
	}
	second, err := newWork("work")
	if err != nil || second == first || !filepath.IsAbs(first) || filepath.Base(filepath.Dir(first)) != "work" {
		t.Errorf("the directories are %s and %s (%v)", first, second, err)
	}
}
