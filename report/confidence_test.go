package report

import (
	"bytes"
	"encoding/base64"
	"image"
	"image/png"
	"math"
	"math/rand/v2"
	"regexp"
	"testing"

	"github.com/pollen-ml/pollen/evaluate"
)

func TestConfidenceShares(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 1))
	values := []float64{0.1, 1, 0.1 - 5e-5, 1 + 5e-5}
	for range 253 {
		values = append(values, 0.1+0.9*random.Float64())
	}
	shares := confidenceShares(values, 10)
	if len(shares) != 19 {
		t.Fatalf("%d edges, want 19: bins of .05 from .1 to 1", len(shares))
	}
	sum := 0.0
	for b, s := range shares[:18] {
		low, high := 0.1+0.05*float64(b), 0.1+0.05*float64(b+1)
		near(t, "left edge", s.X, low, 1e-12)
		inside := 0.0
		for _, v := range values {
			v = math.Min(math.Max(v, 0.1), 1-1e-12)
			if v >= low && v < high {
				inside++
			}
		}
		near(t, "share", s.Y, inside/float64(len(values)), 1e-12)
		sum += s.Y
	}
	near(t, "sum of the shares", sum, 1, 1e-12)
	near(t, "right end", shares[18].X, 1, 1e-12)
	near(t, "height at the right end", shares[18].Y, shares[17].Y, 0)
}

func TestConfidenceHistogramRefuses(t *testing.T) {
	good := []float64{0.5}
	for _, c := range []struct {
		name    string
		classes int
		methods []confidences
		message string
	}{
		{"nothing", 10, nil, "at least 1 method, got none"},
		{"classes", 1, []confidences{{"a", good, good}}, "at least 2 classes, got 1"},
		{"neither", 10, []confidences{{"a", nil, nil}}, "must have confidences, got none"},
		{"letters of some", 10, []confidences{{"a", good, nil}, {"b", good, good}}, "on letters, got 1 of 2"},
		{"no digits", 10, []confidences{{"a", []float64{}, good}}, "a, digits: must have at least 1 value"},
		{"digits of some", 10, []confidences{{"a", good, good}, {"b", nil, good}}, "on digits, got 1 of 2"},
		{"name", 10, []confidences{{"a", good, good}, {"a", good, good}}, "must have distinct names"},
		{"NaN", 10, []confidences{{"a", good, []float64{0.5, math.NaN()}}}, "a, letters: values must be finite, got NaN at 1"},
		{"above 1", 10, []confidences{{"a", []float64{1.01}, good}}, "a, digits: confidence must be in [1/10, 1], got 1.01 at 0"},
		{"averaged log-probabilities", 10, []confidences{{"a", good, []float64{0.015}}}, "must be in [1/10, 1], got 0.015 at 0"},
	} {
		_, err := confidenceHistogram("digits", "letters", c.classes, c.methods)
		refused(t, c.name, err, c.message)
	}
}

// The axes hold the whole of a bar: of 1 of 2 right, it begins at 0.09.
func TestReliabilityLowest(t *testing.T) {
	lowest, err := reliabilityLowest(diagram{"a", []evaluate.Bin{{}, {Count: 2, Confidence: 0.6, Accuracy: 0.5}, {Count: 9, Confidence: 0.9, Accuracy: 1}}})
	if err != nil || math.Abs(lowest-0.0945) > 1e-4 {
		t.Errorf("lowest %v, %v, want 0.0945", lowest, err)
	}
}

func TestReliabilityRefuses(t *testing.T) {
	good := []evaluate.Bin{{Count: 1, Confidence: 0.5, Accuracy: 1}}
	for _, c := range []struct {
		name    string
		methods []diagram
		message string
	}{
		{"nothing", nil, "at least 1 method, got none"},
		{"no bins", []diagram{{"a", nil}}, "got 0 empty bins"},
		{"empty bins", []diagram{{"a", make([]evaluate.Bin, 15)}}, "got 15 empty bins"},
		{"name", []diagram{{"a", good}, {"a", good}}, "must have distinct names"},
		{"NaN", []diagram{{"a", []evaluate.Bin{{Count: 1, Confidence: math.NaN()}}}}, "got 1, NaN, 0"},
		{"accuracy", []diagram{{"a", []evaluate.Bin{{Count: 1, Confidence: 0.5, Accuracy: 2}}}}, "got 1, 0.5, 2"},
		{"count", []diagram{{"a", []evaluate.Bin{{Count: -1}}}}, "got -1, 0, 0"},
	} {
		_, err := reliability(c.methods)
		refused(t, c.name, err, c.message)
	}
}

// The images in the SVG are the tiles' pixels, enlarged and dark on white.
func TestImageGridShowsThePixels(t *testing.T) {
	svg, err := smallFigures(t)["imagegrid"].SVG()
	if err != nil {
		t.Fatal(err)
	}
	images := regexp.MustCompile(`base64,([^"]*)"`).FindAllSubmatch(svg, -1)
	want := [][]byte{{0, 255, 0, 0, 255, 0}, {0, 255, 0, 255, 128, 255}, {9, 9, 9, 9, 9, 9}}
	if len(images) != len(want) {
		t.Fatalf("%d images, want %d", len(images), len(want))
	}
	for i, match := range images {
		file, err := base64.StdEncoding.DecodeString(string(match[1]))
		if err != nil {
			t.Fatal(err)
		}
		img, err := png.Decode(bytes.NewReader(file))
		if err != nil {
			t.Fatal(err)
		}
		scale := img.Bounds().Dx() / 3
		if scale < 2 || img.Bounds().Dy() != 2*scale {
			t.Fatalf("image %d has %v pixels, want a multiple of 3 x 2", i, img.Bounds().Size())
		}
		for y := range 2 * scale {
			for x := range 3 * scale {
				grey, _, _, _ := img.At(x, y).RGBA()
				if got, want := byte(grey>>8), 255-want[i][y/scale*3+x/scale]; got != want {
					t.Fatalf("image %d, pixel (%d, %d): got %d, want %d", i, x, y, got, want)
				}
			}
		}
	}
}

func TestImageGridRefuses(t *testing.T) {
	img := image.NewGray(image.Rect(0, 0, 3, 2))
	good := tile{"digits", "1", img, []guess{{"1", 0.5}}}
	for _, c := range []struct {
		name    string
		methods []string
		tiles   []tile
		columns int
		message string
	}{
		{"no methods", nil, []tile{good}, 1, "at least 1 method, got none"},
		{"no tiles", []string{"a"}, nil, 1, "got 0 and 1"},
		{"no columns", []string{"a"}, []tile{good}, 0, "got 1 and 0"},
		{"no image", []string{"a"}, []tile{good, {Title: "x", Guesses: good.Guesses}}, 1, "tile 1 must have an image"},
		{"empty image", []string{"a"}, []tile{{"", "", image.NewGray(image.Rect(0, 0, 0, 2)), good.Guesses}}, 1, "tile 0 must have an image"},
		{"guesses", []string{"a", "b"}, []tile{good}, 1, "one per method, got 1"},
		{"NaN", []string{"a"}, []tile{{"", "", img, []guess{{"1", math.NaN()}}}}, 1, "must be in [0, 1], got NaN"},
		{"confidence", []string{"a"}, []tile{{"", "", img, []guess{{"1", -0.1}}}}, 1, "must be in [0, 1], got -0.1"},
	} {
		_, err := imageGrid(c.methods, c.tiles, c.columns)
		refused(t, c.name, err, c.message)
	}
}
