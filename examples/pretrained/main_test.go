package main

import (
	"bytes"
	"context"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pollen-ml/pollen/internal/onnxtest"
)

// side is the height and width of images.
const side = 12

// write writes images of noise around a grey value as files of a directory.
func write(t *testing.T, dir string, count int, grey uint8) {
	t.Helper()
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	for i := range count {
		m := image.NewGray(image.Rect(0, 0, side, side))
		for at := range m.Pix {
			m.Pix[at] = color.Gray{Y: grey + uint8((at*7+i*13)%31)}.Y
		}
		var content bytes.Buffer
		if err := png.Encode(&content, m); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprint(i)+".png"), content.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// TestRun: both heads tell dark from bright images, and the figure is saved.
func TestRun(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("XDG_CACHE_HOME", filepath.Join(dir, "cache"))
	for split, count := range map[string]int{"train": 40, "val": 10, "test": 20} {
		write(t, filepath.Join(dir, "data", split, "dark"), count, 20)
		write(t, filepath.Join(dir, "data", split, "bright"), count, 180)
	}
	write(t, filepath.Join(dir, "other"), 20, 100)
	s := settings{
		data: filepath.Join(dir, "data"), out: filepath.Join(dir, "other"), dir: dir, epochs: 60,
		model: onnxtest.Backbone{Channels: 1, Side: side, Filters: 12}.Write(t), input: "none",
	}
	var out bytes.Buffer
	if err := run(context.Background(), &out, s); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	if len(lines) != 4 || !strings.HasPrefix(lines[2], "Adam") || !strings.HasPrefix(lines[3], "NUTS") || strings.Count(out.String(), "1.0000") < 2 {
		t.Errorf("printed %s", out.String())
	}
	if _, err := os.Stat(filepath.Join(dir, "pretrained.png")); err != nil {
		t.Error(err)
	}
}

func TestRunNeedsFlags(t *testing.T) {
	if err := run(context.Background(), &bytes.Buffer{}, settings{}); err == nil || !strings.Contains(err.Error(), "-data") {
		t.Errorf("without flags: %v", err)
	}
}
