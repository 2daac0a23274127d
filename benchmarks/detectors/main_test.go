package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestSeeds(t *testing.T) {
	if err := (study{}).run(t.Context(), ""); err == nil || !strings.Contains(err.Error(), "seeds must be at least 1") {
		t.Errorf("no seeds: %v, want an error", err)
	}
}

func TestReadUSPS(t *testing.T) {
	path := filepath.Join(t.TempDir(), "zip.test")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	// The left half is white, the right half black.
	row := strings.Repeat(" 1", 8) + strings.Repeat(" -1", 8)
	line := strings.Repeat(row, 16) + " \n"
	write("7" + line + "0" + line)
	d, err := readUSPS(path)
	if err != nil {
		t.Fatal(err)
	}
	if d.Len() != 2 || d.Height != 28 || d.Width != 28 || d.Labels[0] != 7 || d.Labels[1] != 0 {
		t.Fatalf("got %d images of %dx%d, labels %v", d.Len(), d.Height, d.Width, d.Labels)
	}
	for _, pixel := range []struct {
		y, x int
		want byte
	}{{3, 10, 0}, {10, 3, 0}, {4, 4, 255}, {23, 12, 255}, {10, 13, 230}, {10, 14, 25}, {10, 15, 0}, {24, 10, 0}} {
		if got := d.Image(1)[pixel.y*28+pixel.x]; max(got, pixel.want)-min(got, pixel.want) > 1 {
			t.Errorf("pixel (%d, %d) is %d, want %d", pixel.y, pixel.x, got, pixel.want)
		}
	}
	for text, want := range map[string]string{"7 1 1\n": "line 1 must have 257 numbers, got 3", "7" + strings.Replace(line, "-1", "x", 1): "line 1"} {
		write(text)
		if _, err := readUSPS(path); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.10q: got %v, want %s", text, err, want)
		}
	}
}
