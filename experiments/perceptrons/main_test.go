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
	"strings"
	"testing"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/bayes"
	"github.com/pollen-ml/pollen/datasets"
)

// images makes a directory of 6x6 images in two classes: 200 for training, which are 2 steps of
// an epoch, and 20 for testing.
func images(t *testing.T) string {
	t.Helper()
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	root := filepath.Join(t.TempDir(), "bars")
	noise := uint32(1)
	for split, count := range map[string]int{"train": 200, "test": 20} {
		for i := range count {
			class := []string{"across", "down"}[i%2]
			img := image.NewGray(image.Rect(0, 0, 6, 6))
			for at := range img.Pix {
				noise = noise*1664525 + 1013904223
				img.Pix[at] = byte(noise >> 26)
			}
			for along := range 6 {
				x, y := along, i/2%6
				if i%2 == 1 {
					x, y = y, x
				}
				img.SetGray(x, y, color.Gray{Y: 200})
			}
			var content bytes.Buffer
			if err := png.Encode(&content, img); err != nil {
				t.Fatal(err)
			}
			path := filepath.Join(root, split, class, fmt.Sprintf("%03d.png", i))
			if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, content.Bytes(), 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	return root
}

// perceptrons runs the program with the test's table of 4 cells and further flags.
func perceptrons(t *testing.T, flags ...string) (out, progress string, err error) {
	t.Helper()
	var results, remarks bytes.Buffer
	common := []string{"-widths", "5", "-epochs", "300", "-seeds", "2", "-temperatures", "1/N", "-methods", "psgld,sgd"}
	err = run(context.Background(), append(common, flags...), &results, &remarks)
	return results.String(), remarks.String(), err
}

func matches(t *testing.T, text string, patterns ...string) {
	t.Helper()
	for _, pattern := range patterns {
		if !regexp.MustCompile("(?m)" + pattern).MatchString(text) {
			t.Errorf("got\n%s\nwant %s", text, pattern)
		}
	}
}

// The table's cost is announced, then it is made, printed and kept. A missing cell is made again,
// identically, whatever runs at the same time.
func TestRun(t *testing.T) {
	data, dir := images(t), filepath.Join(t.TempDir(), "cells")
	out, progress, err := perceptrons(t, "-data", data, "-folder", dir, "-estimate")
	if err != nil {
		t.Fatal(err)
	}
	matches(t, progress, `^psgld-h5-T0.005 +600 steps of .* ms, predictions: 1 of`, `^4 of 4 cells are missing: about .* with 2 at a time`)
	if _, err := os.Stat(dir); out != "" || !os.IsNotExist(err) {
		t.Errorf("an estimate printed %q, and its folder: %v", out, err)
	}

	out, progress, err = perceptrons(t, "-data", data, "-folder", dir)
	if err != nil {
		t.Fatal(err)
	}
	matches(t, progress, `^table  100%  4 of 4 cells  in `)
	matches(t, out, `^36-5-5-2 +test error % +NLL +equal weights % +last state % +seeds +paper %$`,
		`^pSGLD, T = 1/N +\d+\.\d\d ± \d+\.\d\d .* 2 +-$`, `^SGD .* 2 +-$`)
	entries, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil {
		t.Fatal(err)
	}
	if len(entries) != 4 || !strings.HasSuffix(entries[1], "psgld-h5-T0.005-chain1.json") {
		t.Errorf("the folder has %v, want a file for each cell", entries)
	}

	one, err := os.ReadFile(entries[1])
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(entries[1]); err != nil {
		t.Fatal(err)
	}
	again, progress, err := perceptrons(t, "-data", data, "-folder", dir, "-jobs", "1")
	if err != nil {
		t.Fatal(err)
	}
	matches(t, progress, `^1 of 4 cells are missing`)
	if remade, err := os.ReadFile(entries[1]); err != nil || !bytes.Equal(one, remade) || again != out {
		t.Errorf("made again: %s (%v), want %s", remade, err, one)
	}

	_, _, err = perceptrons(t, "-data", data, "-folder", dir, "-epochs", "400")
	matches(t, fmt.Sprint(err), `chain0.json must have the settings .* take another folder`)
	_, _, err = perceptrons(t, "-data", data, "-folder", filepath.Join(dir, "short"), "-epochs", "1")
	matches(t, fmt.Sprint(err), `burn-in is 300 of 2 steps`)
	_, _, err = perceptrons(t, "-data", data, "-temperatures", "warm")
	matches(t, fmt.Sprint(err), `temperature must be 1/N or a number from 0 to 1e6, got "warm"`)
	_, _, err = perceptrons(t, "-data", data, "-temperatures", "0")
	matches(t, fmt.Sprint(err), `psgld at temperature 0 is an optimizer`)
	for name, flags := range map[string][]string{
		"psgld-h5-T1-chain0": {"-temperatures", "1,1.0001"}, "sgd-h5-T0-chain0": {"-methods", "sgd,sgd"}, "sgd-h7-T0-chain0": {"-methods", "sgd", "-widths", "7,7"},
	} {
		_, _, err = perceptrons(t, append(flags, "-data", data)...)
		matches(t, fmt.Sprint(err), "two cells are called "+name)
	}
}

func TestFlags(t *testing.T) {
	for pattern, flags := range map[string][]string{
		`no method "dance"`:                {"-methods", "dance"},
		`widths must be at least 1, got 0`: {"-widths", "400,0"},
		`widths: "wide" is not an intege`:  {"-widths", "wide"},
		`jobs must be at least 1, got 0`:   {"-jobs", "0"},
		`takes flags only, got "more"`:     {"more"},
	} {
		_, _, err := perceptrons(t, flags...)
		matches(t, fmt.Sprint(err), pattern)
	}
}

// A cell that was interrupted is resumed, and gives the result of an uninterrupted one. Its run has
// its settings.
func TestInterruptedCell(t *testing.T) {
	splits, err := datasets.Open(images(t), datasets.Options{Validation: -1})
	if err != nil {
		t.Fatal(err)
	}
	c := cell{Method: "psgld", Data: "bars", DataSize: 200, Width: 5, Temperature: 1, Epochs: 450, Rate: 1e-3, Seed: 1, Chain: 2}
	want, err := c.make(context.Background(), splits.Train, splits.Test, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if want.Samples != 2 || want.Samples != c.samples() || want.Average == want.Equal || want.Average == want.Last {
		t.Errorf("%+v, want three ways to predict by 2 samples", want)
	}
	dir := t.TempDir()
	ctx, stop := context.WithCancel(context.Background())
	_, err = c.make(ctx, splits.Train, splits.Test, dir, bayes.WithObserver(func(e bayes.Event) {
		if e.Done > 650 { // one sample is drawn
			stop()
		}
	}))
	if unfinished := (*bayes.UnfinishedError)(nil); !errors.As(err, &unfinished) || unfinished.Samples != 1 {
		t.Fatalf("%v, want a run that was stopped after a sample", err)
	}
	other := c
	other.Rate = 2e-3
	_, err = other.make(context.Background(), splits.Train, splits.Test, dir)
	matches(t, fmt.Sprint(err), `holds a run whose .* take another folder`)
	first := 0
	got, err := c.make(context.Background(), splits.Train, splits.Test, dir, bayes.WithObserver(func(e bayes.Event) {
		if e.Task == "fit" && e.Done > 0 && first == 0 {
			first = e.Done
		}
	}))
	if err != nil {
		t.Fatal(err)
	}
	if *got != *want {
		t.Errorf("%+v, want %+v", got, want)
	}
	if first <= 650 {
		t.Errorf("the cell began again: its first steps were %d", first)
	}
	if err := got.write(dir); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(c.runDir(dir)); !os.IsNotExist(err) {
		t.Errorf("the finished cell's run is still there: %v", err)
	}
}
