package main

import (
	"bytes"
	"context"
	"io"
	"strconv"
	"strings"
	"testing"
)

// The whole study at a hundredth of its length, on letters that need no download: it tells each method's distance from the reference, and the
// reference's own is 0.
func TestRun(t *testing.T) {
	var out bytes.Buffer
	if err := run(context.Background(), &out, io.Discard, "glyphs", 0.01); err != nil {
		t.Fatal(err)
	}
	rows := map[string][]float64{}
	for _, line := range strings.Split(out.String(), "\n") {
		name, rest, ok := strings.Cut(line, "  ")
		if !ok {
			continue
		}
		for _, field := range strings.Fields(rest) {
			if v, err := strconv.ParseFloat(field, 64); err == nil {
				rows[name] = append(rows[name], v)
			}
		}
	}
	if got := rows["HMC, both seeds"]; len(got) != 4 || got[0] != 1 || got[1] != 0 {
		t.Errorf("HMC against itself: %v, wants agreement 1 and total variation 0", got)
	}
	for _, m := range methods {
		got := rows[m.name]
		if len(got) != 4 || !(got[0] >= 0 && got[0] < 1) || !(got[1] > 0 && got[1] < 1) {
			t.Errorf("%s: %v, wants agreement, total variation, accuracy and NLL", m.name, got)
		}
	}
	if t.Failed() {
		t.Log(out.String())
	}
}

func TestPool(t *testing.T) {
	if got := pool([]float64{0.25, 0.75}, []float64{0.75, 0.25}); got[0] != 0.5 || got[1] != 0.5 {
		t.Errorf("%v, wants the mean", got)
	}
}
