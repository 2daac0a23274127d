package report

import (
	"bytes"
	"encoding/xml"
	"flag"
	"image"
	"image/color"
	"image/draw"
	"image/png"
	"io"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/pollen-ml/pollen/evaluate"
)

var update = flag.Bool("update", false, "rewrite the golden files in testdata")

// ramp returns count values from 0 on, in equal steps.
func ramp(count int, step float64) []float64 {
	values := make([]float64, count)
	for i := range values {
		values[i] = step * float64(i)
	}
	return values
}

// smallFigures returns one small figure of each kind.
func smallFigures(t *testing.T) map[string]*Figure {
	t.Helper()
	figures := map[string]*Figure{}
	add := func(name string, f *Figure, err error) {
		t.Helper()
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		figures[name] = f
	}
	f, err := weightDensity("weight", []trace{
		{Method: "SGD", Values: slices.Repeat([]float64{0.5, 0.51, 0.5, 0.49}, 3)},
		{Method: "SGLD", Values: slices.Repeat([]float64{0, 1, 0.5, 0.2}, 6), First: 600, Last: 3000},
	}, nil)
	add("weightdensity", f, err)
	f, err = confidenceHistogram("digits", "letters", 10, []confidences{
		{"SGD", []float64{1, 0.99, 0.98}, []float64{0.9, 0.99, 0.5, 0.31}},
		{"SGLD", []float64{0.99, 0.97, 0.9}, []float64{0.5, 0.12, 0.3, 0.93}},
	})
	add("confidence", f, err)
	f, err = reliability([]diagram{
		{"SGD", []evaluate.Bin{{Count: 5, Confidence: 0.55, Accuracy: 0.4}, {}, {Count: 90, Confidence: 0.97, Accuracy: 0.9}}},
		{"SGLD", []evaluate.Bin{{Count: 8, Confidence: 0.52, Accuracy: 0.5}, {Count: 80, Confidence: 0.94, Accuracy: 0.95}}},
	})
	add("reliability", f, err)
	curves := []Curve{{"SGD", ramp(4, 100), []float64{2.3, 0.5, 0.1, 0.03}}, {"SGLD <T & 1>", ramp(4, 100), []float64{2.3, 0.7, 0.3, 0.2}}}
	f, err = Curves(Axes{X: "step", Y: "loss, nats", LogY: true}, curves)
	add("curves-log", f, err)
	f, err = Curves(Axes{X: "step", Y: "temperature", Target: 1, TargetName: "target"}, curves)
	add("curves", f, err)
	f, err = riskCoverage([]selection{{"SGD", "letters", evaluate.SelectiveRisk{Coverage: []float64{0.5, 1}, Risk: []float64{0, 0.1}, AURC: 0.05}}})
	add("riskcoverage", f, err)
	images := &Images{
		Pixels:   []byte{0, 255, 0, 0, 255, 0, 0, 255, 0, 255, 128, 255, 9, 9, 9, 9, 9, 9},
		Channels: 1, Height: 2, Width: 3, Ink: true,
	}
	f, err = imageGrid([]string{"SGD", "SGLD"}, []tile{
		{"digits", "1", images.render(0), []guess{{"1", 1}, {"1", 0.99}}},
		{"letters", "A", images.render(1), []guess{{"4", 0.9}, {"8", 0.3}}},
		{"letters", "B", images.render(2), []guess{{"0", 0}, {"8", 0.5}}},
	}, 2)
	add("imagegrid", f, err)
	subjects := whole.subjects(t)
	for _, row := range figureRows() {
		f, err = row.Draw(subjects)
		add("row-"+row.File, f, err)
	}
	return figures
}

// withImages are the figures whose SVG has no golden file: compressed images may change with the
// compiler.
var withImages = map[string]bool{"imagegrid": true, "row-examples": true, "row-mistakes": true}

// The SVG of every figure, byte for byte.
func TestFiguresAgainstGoldenFiles(t *testing.T) {
	for name, f := range smallFigures(t) {
		if withImages[name] {
			continue
		}
		got, err := f.SVG()
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join("testdata", name+".svg")
		if *update {
			if err := os.WriteFile(path, got, 0o644); err != nil {
				t.Fatal(err)
			}
			continue
		}
		want, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got, want) {
			t.Errorf("%s differs from %s: look at both, then run go test ./report -update", name, path)
		}
	}
}

func TestFiguresAreTheSameTwice(t *testing.T) {
	first, second := smallFigures(t), smallFigures(t)
	same := func(name, format string, write func(*Figure) ([]byte, error)) {
		a, err := write(first[name])
		if err != nil {
			t.Fatal(err)
		}
		b, err := write(second[name])
		if err != nil {
			t.Fatal(err)
		}
		again, err := write(first[name])
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(a, b) || !bytes.Equal(a, again) {
			t.Errorf("%s: the %s differs from run to run", name, format)
		}
	}
	for name := range first {
		same(name, "SVG", (*Figure).SVG)
	}
	same("imagegrid", "PNG", (*Figure).PNG)
}

// Every SVG is well-formed, gives each text its width, and refers to nothing outside itself.
func TestSVGStandsAlone(t *testing.T) {
	for name, f := range smallFigures(t) {
		svg, err := f.SVG()
		if err != nil {
			t.Fatal(err)
		}
		texts := 0
		decoder := xml.NewDecoder(bytes.NewReader(svg))
		for {
			token, err := decoder.Token()
			if err == io.EOF {
				break
			}
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			element, ok := token.(xml.StartElement)
			if !ok {
				continue
			}
			attribute := map[string]string{}
			for _, a := range element.Attr {
				attribute[a.Name.Local] = a.Value
			}
			if link, ok := attribute["href"]; ok && !strings.HasPrefix(link, "data:") {
				t.Errorf("%s: refers to %.40q", name, link)
			}
			if element.Name.Local == "text" {
				texts++
				if attribute["textLength"] == "" || !strings.Contains(attribute["style"], "sans-serif") {
					t.Errorf("%s: text with attributes %v, want a textLength and a font of the system to fall back on", name, attribute)
				}
			}
		}
		if texts < 5 {
			t.Errorf("%s: %d texts, want labels, ticks and a legend", name, texts)
		}
	}
}

// Every PNG has the size of its figure, a white corner, and ink in the colours of its methods.
func TestPNGShowsTheMethods(t *testing.T) {
	for name, f := range smallFigures(t) {
		file, err := f.PNG()
		if err != nil {
			t.Fatal(err)
		}
		img, err := png.Decode(bytes.NewReader(file))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		wantWidth, wantHeight := f.width.Dots(dotsPerInch), f.height.Dots(dotsPerInch)
		bounds := img.Bounds()
		if math.Abs(float64(bounds.Dx())-wantWidth) > 1 || math.Abs(float64(bounds.Dy())-wantHeight) > 1 {
			t.Errorf("%s: %v pixels, want about %.0f x %.0f", name, bounds.Size(), wantWidth, wantHeight)
		}
		if r, g, b, a := img.At(0, 0).RGBA(); r&g&b&a != 0xffff {
			t.Errorf("%s: the corner is not white", name)
		}
		want := []color.RGBA{methodColor(0), methodColor(1)}
		switch name {
		case "weightdensity", "row-weight":
			want = []color.RGBA{windowColor(methodColor(0), 0, 1), windowColor(methodColor(1), 0, 1)}
		case "riskcoverage":
			want = want[:1]
		}
		rgba := image.NewRGBA(bounds)
		draw.Draw(rgba, bounds, img, bounds.Min, draw.Src)
		for _, c := range want {
			pixels := 0
			for i := 0; i < len(rgba.Pix); i += 4 {
				if rgba.Pix[i] == c.R && rgba.Pix[i+1] == c.G && rgba.Pix[i+2] == c.B {
					pixels++
				}
			}
			if pixels < 50 {
				t.Errorf("%s: %d pixels of colour %v, want a line of them", name, pixels, c)
			}
		}
	}
}

func TestSave(t *testing.T) {
	f := smallFigures(t)["riskcoverage"]
	dir := t.TempDir()
	for _, name := range []string{"a.png", "b.svg", "c.SVG"} {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte("old"), 0o644); err != nil {
			t.Fatal(err)
		}
		if err := f.Save(path); err != nil {
			t.Fatal(err)
		}
		content, err := os.ReadFile(path)
		if err != nil || len(content) < 1000 {
			t.Errorf("%s: %d bytes, %v", name, len(content), err)
		}
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		if mode := info.Mode().Perm(); runtime.GOOS != "windows" && mode&0o444 != 0o444 {
			t.Errorf("%s: mode %v, want it readable by all", name, mode)
		}
	}
	for _, path := range []string{filepath.Join(dir, "a.jpg"), filepath.Join(dir, "a"), filepath.Join(dir, "none", "a.png")} {
		if err := f.Save(path); err == nil || !strings.HasPrefix(err.Error(), "report: Save: ") {
			t.Errorf("Save(%s): got error %v", filepath.Base(path), err)
		}
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	if len(entries) != 3 {
		t.Errorf("Save left %d files, want 3", len(entries))
	}
}

// The shades of a method run from light to dark, each darker than the one before.
func TestWindowColorDarkens(t *testing.T) {
	for _, c := range palette {
		var luminance []float64
		for w := range densityWindows {
			shade := windowColor(c, w, densityWindows)
			luminance = append(luminance, 0.2126*float64(shade.R)+0.7152*float64(shade.G)+0.0722*float64(shade.B))
		}
		slices.Reverse(luminance)
		if !slices.IsSorted(luminance) || luminance[densityWindows-1] < luminance[0]+25 {
			t.Errorf("%v: luminance from dark to light %v", c, luminance)
		}
	}
}
