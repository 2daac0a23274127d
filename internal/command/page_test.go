package command

import (
	"context"
	"html"
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
			content, err := os.ReadFile(filepath.Join(c.page, "report.html"))
			if err != nil {
				t.Fatal(err)
			}
			if got := strings.Contains(string(content), ">Examples</h2>"); got != drawn {
				t.Errorf("%d channels: %s: the page has images: %t, want %t", channels, c.command, got, drawn)
			}
		}
	}
}

// The page of a run ends with the last line that fit prints, and its title begins with the names of
// the run and the data. eval and ood write the same.
func TestPageHasTheVerdict(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	root := t.TempDir()
	data, dir := filepath.Join(root, "flowers"), filepath.Join(root, "run-7")
	if err := writeImages(data, 2, 30); err != nil {
		t.Fatal(err)
	}
	stdout, _ := succeed(t, "fit", "--data", data, "--model", "mlp-4", "--method", "sgd", "--epochs", "1", "--folder", dir)
	lines := strings.Split(strings.TrimSpace(stdout), "\n")
	text, command, found := strings.Cut(lines[len(lines)-1], " To improve it")
	if !strings.HasPrefix(text, "The run is ") || !found {
		t.Fatalf("the last line is %q", lines[len(lines)-1])
	}
	_, command, _ = strings.Cut(command, ": ")
	check := func(by string) {
		t.Helper()
		content, err := os.ReadFile(filepath.Join(dir, "report.html"))
		if err != nil {
			t.Fatal(err)
		}
		page := html.UnescapeString(string(content))
		if want := "<title>run-7 on flowers: accuracy"; !strings.Contains(page, want) {
			t.Errorf("%s: the page lacks %q", by, want)
		}
		if at := strings.Index(page, text); at < 0 || !strings.Contains(page[at:], "<pre>"+command+"</pre>") {
			t.Errorf("%s: the page lacks %q and %q", by, text, command)
		}
	}
	check("fit")
	for _, by := range []string{"eval", "ood"} {
		if err := os.Remove(filepath.Join(dir, "report.html")); err != nil {
			t.Fatal(err)
		}
		succeed(t, by, dir)
		check(by)
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
