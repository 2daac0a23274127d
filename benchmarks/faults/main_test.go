package main

import "testing"

// TestFaults is the short form of the command.
func TestFaults(t *testing.T) {
	if testing.Short() {
		t.Skip("-short leaves out kills and disks that fill")
	}
	h := &harness{sizes: short, ctx: t.Context(), work: t.TempDir(), report: t.Logf}
	if err := h.build(); err != nil {
		t.Fatal(err)
	}
	for _, s := range stages {
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
