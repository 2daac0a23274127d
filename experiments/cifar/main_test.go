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
	"regexp"
	"slices"
	"strings"
	"testing"
)

// The sizes of the small data, in which each class has its own shade.
const (
	perClass = 12 // training images
	tested   = 40
	mistakes = 2 // of the reference
)

// smallSource writes images, with the test images in an order given by a table, and a reference.
func smallSource(t *testing.T) source {
	t.Helper()
	s := source{data: filepath.Join(t.TempDir(), "cifar"), size: tested, least: 1 - float64(mistakes)/tested}
	s.reference = filepath.Join(filepath.Dir(s.data), "probs.csv")
	writeImage := func(class, number int, path ...string) {
		m := image.NewRGBA(image.Rect(0, 0, 8, 8))
		for i := range 64 {
			m.Set(i%8, i/8, color.RGBA{uint8(20*class + (i*number)%16), uint8(100 + number), uint8(3 * class), 255})
		}
		name := filepath.Join(append([]string{s.data}, path...)...)
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		f, err := os.Create(name)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		if err := png.Encode(f, m); err != nil {
			t.Fatal(err)
		}
	}
	for class := range classes {
		for i := range perClass {
			writeImage(class, i, "train", fmt.Sprint(class), fmt.Sprintf("%d.png", i))
		}
	}
	table := "file,class\n"
	for i := range tested {
		writeImage(i*7%classes, i+perClass, "test", fmt.Sprintf("%d.png", i))
		table += fmt.Sprintf("%d.png,%d\n", i, i*7%classes)
	}
	write(t, filepath.Join(s.data, "test", "labels.csv"), table)
	lines := ""
	for _, i := range shuffled("test", tested) {
		class := i * 7 % classes
		if i < mistakes {
			class = (class + 1) % classes
		}
		row := slices.Repeat([]string{"1.0e-02"}, classes)
		row[class] = "9.1e-01"
		lines += strings.Join(row, " ") + "\n"
	}
	write(t, s.reference, lines)
	return s
}

func write(t *testing.T, path, content string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

// The whole program on small data: HMC agrees with itself, each method has a row, and the same
// command reuses finished runs.
func TestRun(t *testing.T) {
	s, dir := smallSource(t), t.TempDir()
	arguments := []string{"-data", s.data, "-reference", s.reference, "-network", "mlp-10", "-epochs", "50", "-images", "120", "-device", "cpu",
		"-folder", filepath.Join(dir, "runs")}
	var estimate bytes.Buffer
	if err := run(context.Background(), append(arguments, "-estimate"), nil, &estimate, s); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(dir, "runs")); err == nil {
		t.Error("an estimate made a folder")
	}
	if !regexp.MustCompile(`(?m)^ensemble of 5 +30000 images, 75 steps of .* here, .* on one NVIDIA H200 by prediction$`).MatchString(estimate.String()) {
		t.Errorf("estimate: got\n%s", estimate.String())
	}
	var tables [2]bytes.Buffer
	for i, more := range [][]string{nil, {filepath.Join(dir, "runs", "sgld")}} {
		if err := run(context.Background(), append(arguments, more...), &tables[i], new(bytes.Buffer), s); err != nil {
			t.Fatal(err)
		}
	}
	spaces := regexp.MustCompile(` +`)
	before, got := spaces.ReplaceAllString(tables[0].String(), " "), spaces.ReplaceAllString(tables[1].String(), " ")
	if !regexp.MustCompile(`(?m)^HMC 1\.000 0\.000 0\.9500 0\.3\d+ 0\.\d+ 0\.940 0\.074$`).MatchString(got) {
		t.Errorf("no row of HMC in\n%s", got)
	}
	for _, m := range methods {
		row := regexp.MustCompile(`(?m)^` + m.title + ` 0\.\d+ .*$`).FindString(got)
		if row == "" || !strings.Contains(before, row) {
			t.Errorf("%s: row %q, not as before", m.title, row)
		}
	}
	own := regexp.MustCompile(`(?m)^SGLD (.* )0\.915 0\.110$`).FindStringSubmatch(got)
	if own == nil || !strings.Contains(got, "sgld "+own[1]+"\n") {
		t.Errorf("a folder's row is not that of its run:\n%s", got)
	}
}

func TestShuffled(t *testing.T) {
	if got, want := shuffled("test", testSize)[:5], []int{9933, 5669, 163, 6686, 4747}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestRefusals(t *testing.T) {
	for name, c := range map[string]struct {
		change func(s *source)
		want   string
	}{
		"another file": {func(s *source) { s.sum = "00" }, "SHA-256"},
		"another order": {func(s *source) {
			table := filepath.Join(s.data, "test", "labels.csv")
			content, err := os.ReadFile(table)
			if err != nil {
				t.Fatal(err)
			}
			lines := strings.Split(strings.TrimSpace(string(content)), "\n")
			slices.Reverse(lines[1:])
			write(t, table, strings.Join(lines, "\n"))
		}, "not in the order"},
		"fewer lines": {func(s *source) {
			content, err := os.ReadFile(s.reference)
			if err != nil {
				t.Fatal(err)
			}
			write(t, s.reference, string(content[:len(content)/2]))
		}, "lines"},
		"no numbers":   {func(s *source) { write(t, s.reference, strings.Repeat("a ", classes)) }, "line 1"},
		"other images": {func(s *source) { s.size++ }, "test images"},
	} {
		t.Run(name, func(t *testing.T) {
			s := smallSource(t)
			c.change(&s)
			_, _, err := s.load(context.Background(), 100)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want an error with %q", err, c.want)
			}
		})
	}
	s := smallSource(t)
	if _, _, err := s.load(context.Background(), 1000); err == nil {
		t.Error("more images than there are: no error")
	}
	for _, arguments := range [][]string{{}, {"-data", s.data}, {"-data", s.data, "-reference", s.reference, "-methods", "magic"},
		{"-data", s.data, "-reference", s.reference, "-epochs", "0"}, {"-data", s.data, "-reference", s.reference, "-device", "tpu"},
		{"-data", s.data, "-reference", s.reference, "-precision", "tf32", "-device", "cpu"}} {
		if err := run(context.Background(), arguments, nil, new(bytes.Buffer), s); err == nil {
			t.Errorf("%q: no error", arguments)
		}
	}
}
