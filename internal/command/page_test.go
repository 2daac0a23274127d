package command

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pkg/errors"
)

// A signal while a page is drawn ends the command, however long the drawing takes.
func TestUntilCanceled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	endless := make(chan struct{})
	defer close(endless)
	err := untilCanceled(ctx, func() error {
		cancel()
		<-endless
		return nil
	})
	if !isCanceled(err) {
		t.Errorf("error %v, want that of a canceled context", err)
	}
	want := errors.New("full")
	if err := untilCanceled(t.Context(), func() error { return want }); err != want {
		t.Errorf("error %v, want %v", err, want)
	}
}

// Runs on images of two and of four channels have a page, with the images that can be drawn.
func TestPageOfChannels(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	for channels, drawn := range map[byte]bool{2: false, 4: true} {
		root := t.TempDir()
		data, other := filepath.Join(root, "data"), filepath.Join(root, "other")
		dir, page := filepath.Join(root, "run"), filepath.Join(root, "page")
		writeChannels(t, data, channels)
		writeChannels(t, other, channels)
		for _, c := range []struct{ page, command string }{
			{dir, "fit --model mlp-2 --method sgd --schedule constant:0.1 --epochs 1 --batch 5 --data " + data + " --folder " + dir},
			{page, "ood " + dir + " --out " + other + " --page " + page},
		} {
			console, _, remarks, _ := testConsole()
			if code := run(strings.Fields(c.command), console); code != 0 {
				t.Fatalf("%d channels: %s: exit code %d: %s", channels, c.command, code, remarks)
			}
			html, err := os.ReadFile(filepath.Join(c.page, "report.html"))
			if err != nil {
				t.Fatal(err)
			}
			if got := strings.Contains(string(html), ">Examples</h2>"); got != drawn {
				t.Errorf("%d channels: %s: the page has images: %t, want %t", channels, c.command, got, drawn)
			}
		}
	}
}

// writeChannels writes IDX files of 20 images of 4x4 of each split, in two classes.
func writeChannels(t *testing.T, dir string, channels byte) {
	t.Helper()
	const count, side = 20, 4
	images := append([]byte{0, 0, 8, 4}, 0, 0, 0, count, 0, 0, 0, channels, 0, 0, 0, side, 0, 0, 0, side)
	labels := []byte{0, 0, 8, 1, 0, 0, 0, count}
	for i := range count * int(channels) * side * side {
		images = append(images, byte(i*i))
	}
	for i := range count {
		labels = append(labels, byte(i%2))
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, split := range []string{"train", "t10k"} {
		for name, content := range map[string][]byte{"-images-idx3-ubyte": images, "-labels-idx1-ubyte": labels} {
			if err := os.WriteFile(filepath.Join(dir, split+name), content, 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
}
