package main

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/pollen-ml/pollen/internal/testenv"
)

func TestSeeds(t *testing.T) {
	if err := run(t.Context(), t.Output(), t.TempDir(), 1, division{}); err == nil || !strings.Contains(err.Error(), "at least 2 seeds") {
		t.Errorf("one seed: %v, want an error", err)
	}
}

// TestPromises: over five splits each promise is kept within three standard errors.
func TestPromises(t *testing.T) {
	testenv.NeedsAll(t, "many calibrations")
	var out bytes.Buffer
	if err := run(context.Background(), &out, t.TempDir(), 5, division{2000, 1000, 4000}); err != nil {
		t.Fatal(err)
	}
	text := out.String()
	for _, p := range promises {
		at := strings.Index(text, p.title)
		if at < 0 {
			t.Fatalf("no row %q in\n%s", p.title, text)
		}
		var mean, standardError, std, chance float64
		if _, err := fmt.Sscanf(strings.TrimSpace(text[at+len(p.title):]), "%f ± %f ± %f ± %f", &mean, &standardError, &std, &chance); err != nil {
			t.Fatal(err)
		}
		// The standard error of five shares by chance is the deviation over the root of 5.
		if off := mean - p.rate; off < -3*chance/2.2 || off > 3*chance/2.2 || chance > 0.015 {
			t.Errorf("%s: %v, want %v ± %v", p.title, mean, p.rate, chance/2.2)
		}
		if std > 2.5*chance {
			t.Errorf("%s: shares differ by %v, by chance %v", p.title, std, chance)
		}
	}
}
