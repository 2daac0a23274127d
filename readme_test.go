package pollen

import (
	"bytes"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"
)

// The README's program compiles, passes vet, and does what it says on folders of pictures placed
// where it looks.
func TestReadmeProgram(t *testing.T) {
	readme, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	code := regexp.MustCompile("(?s)```go\n(.*?)```").FindSubmatch(readme)
	if code == nil {
		t.Fatal("README.md has no Go program")
	}
	dir := t.TempDir()
	source, program := filepath.Join(dir, "main.go"), filepath.Join(dir, "program")
	if runtime.GOOS == "windows" {
		program += ".exe"
	}
	if err := os.WriteFile(source, code[1], 0o644); err != nil {
		t.Fatal(err)
	}
	for _, arguments := range [][]string{{"vet", source}, {"build", "-o", program, source}} {
		if out, err := exec.Command("go", arguments...).CombinedOutput(); err != nil {
			t.Fatalf("go %s: %v\n%s", arguments[0], err, out)
		}
	}
	drawPictures(t, filepath.Join(dir, "flowers", "rose"), 130, color.RGBA{R: 220, G: 40, B: 60, A: 255})
	drawPictures(t, filepath.Join(dir, "flowers", "tulip"), 130, color.RGBA{R: 230, G: 200, B: 30, A: 255})
	drawPictures(t, filepath.Join(dir, "weeds"), 9, color.RGBA{G: 120, B: 40, A: 255})
	run := exec.Command(program)
	run.Dir = dir
	run.Env = append(os.Environ(), "HOME="+dir, "XDG_CACHE_HOME="+filepath.Join(dir, "cache"))
	out, err := run.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	if len(lines) != 4 || !regexp.MustCompile(`(?i)accuracy 1\.0+, .*AUROC`).MatchString(lines[0]) {
		t.Fatalf("got\n%s\nwants a line of scores and three answers", out)
	}
	for _, answer := range lines[1:] {
		if !regexp.MustCompile(`^.*\d\.png: (rose|tulip) \([01]\.\d\d\)( of [a-z, ]+|; empty prediction set)(; out of distribution)?$`).MatchString(answer) {
			t.Errorf("answer %q", answer)
		}
	}
	if _, err := Open(filepath.Join(dir, "runs", "flowers")); err != nil {
		t.Error(err)
	}
}

// drawPictures makes a folder of pictures of 8x8: noise, with a square of a colour somewhere.
func drawPictures(t *testing.T, dir string, count int, shade color.RGBA) {
	t.Helper()
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	noise := uint32(count)
	for i := range count {
		picture := image.NewRGBA(image.Rect(0, 0, 8, 8))
		for y := range 8 {
			for x := range 8 {
				noise = noise*1664525 + 1013904223
				c := color.RGBA{R: byte(noise >> 26), G: byte(noise >> 25 & 63), B: byte(noise >> 24 & 63), A: 255}
				if (x+i)%8 < 4 && (y+i/8)%8 < 4 {
					c = shade
				}
				picture.SetRGBA(x, y, c)
			}
		}
		var content bytes.Buffer
		if err := png.Encode(&content, picture); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("%d.png", i)), content.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}
