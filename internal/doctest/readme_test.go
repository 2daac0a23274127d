package doctest

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
	"slices"
	"strings"
	"testing"

	pollenapi "github.com/pollen-ml/pollen/bayes"
)

// The README lists every method except distil, which has a command of its own.
func TestReadmeMethods(t *testing.T) {
	_, table, _ := strings.Cut(read(t, "README.md").text, "| kind | `--method` |")
	table, _, _ = strings.Cut(table, "\n\n")
	var listed []string
	for _, name := range regexp.MustCompile("`([a-z-]+)`").FindAllStringSubmatch(table, -1) {
		listed = append(listed, name[1])
	}
	for _, name := range pollenapi.MethodNames() {
		if name != "distil" && !slices.Contains(listed, name) {
			t.Errorf("README.md must list the method %s", name)
		}
	}
	for _, name := range listed {
		if !slices.Contains(pollenapi.MethodNames(), name) {
			t.Errorf("README.md lists %s, which is no method", name)
		}
	}
}

// TestReadmeProgram: the README's program compiles, passes vet, and prints what its comments show,
// on directories of images placed where it looks for them. Its only change is fewer epochs and
// chains: otherwise it trains for a good part of the default budget of ten minutes.
func TestReadmeProgram(t *testing.T) {
	code := regexp.MustCompile("(?s)```go\n(.*?)```").FindStringSubmatch(read(t, "README.md").text)
	if code == nil {
		t.Fatal("README.md has no Go program")
	}
	dir := t.TempDir()
	source, program := filepath.Join(dir, "main.go"), filepath.Join(dir, "program")
	if runtime.GOOS == "windows" {
		program += ".exe"
	}
	const spec, short = `bayes.Spec{Network: "cnn"}`, `bayes.Spec{Network: "cnn", Epochs: 8, WarmEpochs: 4, Chains: 2}`
	if !strings.Contains(code[1], spec) {
		t.Fatalf("the program does not have %s", spec)
	}
	if err := os.WriteFile(source, []byte(strings.Replace(code[1], spec, short, 1)), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, arguments := range [][]string{{"vet", source}, {"build", "-o", program, source}} {
		if out, err := exec.Command("go", arguments...).CombinedOutput(); err != nil {
			t.Fatalf("go %s: %v\n%s", arguments[0], err, out)
		}
	}
	drawImages(t, filepath.Join(dir, "flowers", "rose"), 130, color.RGBA{R: 220, G: 40, B: 60, A: 255})
	drawImages(t, filepath.Join(dir, "flowers", "tulip"), 130, color.RGBA{R: 230, G: 200, B: 30, A: 255})
	drawImages(t, filepath.Join(dir, "weeds"), 9, color.RGBA{G: 120, B: 40, A: 255})
	run := exec.Command(program)
	run.Dir = dir
	run.Env = append(os.Environ(), "HOME="+dir, "XDG_CACHE_HOME="+filepath.Join(dir, "cache"))
	out, err := run.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	if len(lines) != 1+9 || !regexp.MustCompile(`(?i)accuracy 1\.0+, .*AUROC`).MatchString(lines[0]) {
		t.Fatalf("got\n%s\nwant a line of scores and nine answers", out)
	}
	for _, answer := range lines[1:] {
		if !regexp.MustCompile(`^.*\d\.png: (rose|tulip) \([01]\.\d\d\)( of [a-z, ]+|; empty prediction set)(; out of distribution)?$`).MatchString(answer) {
			t.Errorf("answer %q, want FILE: CLASS (PROBABILITY) and its prediction set", answer)
		}
	}
	if _, err := pollenapi.Open(filepath.Join(dir, "runs", "flowers")); err != nil {
		t.Error(err)
	}
}

// drawImages makes a directory of images of 8x8 pixels: noise, with a square of one colour
// somewhere.
func drawImages(t *testing.T, dir string, count int, shade color.RGBA) {
	t.Helper()
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	noise := uint32(count)
	for i := range count {
		img := image.NewRGBA(image.Rect(0, 0, 8, 8))
		for y := range 8 {
			for x := range 8 {
				noise = noise*1664525 + 1013904223
				c := color.RGBA{R: byte(noise >> 26), G: byte(noise >> 25 & 63), B: byte(noise >> 24 & 63), A: 255}
				if (x+i)%8 < 4 && (y+i/8)%8 < 4 {
					c = shade
				}
				img.SetRGBA(x, y, c)
			}
		}
		var content bytes.Buffer
		if err := png.Encode(&content, img); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("%d.png", i)), content.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}
