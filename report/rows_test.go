package report

import (
	"bytes"
	"image"
	"image/color"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"gonum.org/v1/plot"

	"github.com/pollen-ml/pollen/evaluate"
	"github.com/pollen-ml/pollen/internal/testenv"
)

// The available input decides what is drawn. Of the curves of scores, which are rows made by
// scoreRow, the AUROC's is among the figures here.
func TestFiguresApply(t *testing.T) {
	without := func(change func(d *drawn)) []Subject {
		d := whole
		change(&d)
		return d.subjects(t)
	}
	different := whole.subjects(t)
	different[1] = drawn{runs: 2, classes: 4, examples: 50, labels: true}.subjects(t)[1]
	for _, c := range []struct {
		name     string
		subjects []Subject
		want     string
	}{
		{"all", whole.subjects(t),
			"examples mistakes confidence indistribution coverage reliability sets confusion confusions auroc warmstart weight validation"},
		{"no labels", without(func(d *drawn) { d.labels = false }), "examples confidence indistribution sets auroc warmstart weight validation"},
		{"nothing out of distribution", without(func(d *drawn) { d.out = false }),
			"examples mistakes confidence indistribution coverage reliability sets confusion confusions warmstart weight validation"},
		{"nothing held out", without(func(d *drawn) { d.calibration = false }),
			"examples mistakes confidence indistribution coverage reliability confusion confusions auroc warmstart weight validation"},
		{"neither", without(func(d *drawn) { d.calibration, d.out = false, false }),
			"examples mistakes confidence coverage reliability confusion confusions warmstart weight validation"},
		{"no images", without(func(d *drawn) { d.images = false }),
			"confidence indistribution coverage reliability sets confusion confusions auroc warmstart weight validation"},
		{"no traces", without(func(d *drawn) { d.trace = false }),
			"examples mistakes confidence indistribution coverage reliability sets confusion confusions auroc"},
		{"many classes", without(func(d *drawn) { d.classes = 51 }),
			"examples mistakes confidence indistribution coverage reliability sets confusions auroc warmstart weight validation"},
		{"one example", drawn{runs: 1, classes: 2, examples: 1, labels: true}.subjects(t), "confidence"},
		{"different data", different, "reliability warmstart weight validation"},
		{"not assessed", []Subject{{Name: "a", Watched: "w", Trace: ramp(40, 1)}}, "weight"},
		{"warm start", []Subject{{Name: "a"}, {Name: "b", WarmLosses: [][]float64{{2, 1}}}}, "warmstart"},
		{"warm start that diverged", []Subject{{Name: "a", WarmLosses: [][]float64{{2, math.NaN()}}}}, ""},
		{"nothing", []Subject{{Name: "a"}}, ""},
	} {
		var got []string
		for _, row := range figureRows() {
			other := slices.ContainsFunc(evaluate.Scores(), func(s evaluate.Score) bool {
				return s.Curve != nil && s.Name == row.File && s.Name != "auroc"
			})
			if row.Applies(c.subjects) && !other {
				got = append(got, row.File)
			}
		}
		if names := strings.Join(got, " "); names != c.want {
			t.Errorf("%s: got figures %s, want %s", c.name, names, c.want)
		}
	}
}

// For any runs, each figure that applies can be drawn.
func TestFiguresOfAllSorts(t *testing.T) {
	random := rand.New(rand.NewPCG(32, 1))
	yes := func() bool { return random.IntN(3) > 0 }
	for range 12 {
		d := drawn{
			runs: 1 + random.IntN(8), classes: 2 + random.IntN([]int{3, 60}[random.IntN(2)]), examples: 1 + random.IntN([]int{5, 80}[random.IntN(2)]),
			channels: []int{1, 3}[random.IntN(2)], side: []int{1, 7, 30}[random.IntN(3)],
			labels: yes(), out: yes(), calibration: yes(), images: yes(), trace: yes(),
		}
		subjects := d.subjects(t)
		for _, row := range figureRows() {
			if !row.Applies(subjects) {
				continue
			}
			figure, err := row.Draw(subjects)
			if err != nil {
				t.Errorf("%+v: %s: %v", d, row.File, err)
				continue
			}
			if _, err := figure.SVG(); err != nil {
				t.Errorf("%+v: %s: %v", d, row.File, err)
			}
			for _, size := range []float64{float64(figure.width), float64(figure.height)} {
				if !(size > 50 && size < 3000) {
					t.Errorf("%+v: %s: %v points wide and %v high", d, row.File, figure.width, figure.height)
				}
			}
			if caption := row.captionFor(subjects); strings.Contains(caption, "{") || !strings.HasSuffix(caption, ".") || row.Title == "" {
				t.Errorf("%s: title %q, caption %q", row.File, row.Title, caption)
			}
		}
	}
}

func TestWritePage(t *testing.T) {
	dir := t.TempDir()
	extra := Section{Title: "Chains", Code: "two"}
	if err := WritePage(dir, "Roses", "and weeds", whole.subjects(t), extra); err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var files []string
	for _, entry := range entries {
		files = append(files, entry.Name())
	}
	want := []string{"report.html"}
	for _, row := range figureRows() {
		want = append(want, row.File+".png")
	}
	slices.Sort(want)
	if !slices.Equal(files, want) {
		t.Errorf("got files %v, want %v", files, want)
	}
	content, err := os.ReadFile(filepath.Join(dir, "report.html"))
	if err != nil {
		t.Fatal(err)
	}
	html := string(content)
	at := 0
	for _, part := range []string{
		"<title>Roses</title>", ">Scores</h2>", `<th scope="row">accuracy</th>`, `<th scope="row">confidence on weeds</th>`, "<details>",
		">Out-of-distribution detection</h2>", ">mutual information<", ">Examples</h2>", "Calibration on roses: accuracy against", ">Chains</h2>",
	} {
		next := strings.Index(html[at:], part)
		if next < 0 {
			t.Fatalf("the page lacks %q, or has it too early", part)
		}
		at += next
	}
	for _, odd := range []string{"{in}", "{out}", "digits", "letters"} {
		if strings.Contains(html, odd) {
			t.Errorf("the page speaks of %q", odd)
		}
	}
	var again bytes.Buffer
	page, _, err := newPage("Roses", "and weeds", whole.subjects(t), []Section{extra})
	if err != nil {
		t.Fatal(err)
	}
	if err := page.writeHTML(&again); err != nil || again.String() != html {
		t.Errorf("the page differs from time to time (%v)", err)
	}
}

func TestWritePageRefuses(t *testing.T) {
	good := whole.subjects(t)[:1]
	images := *good[0].InImages
	for _, c := range []struct {
		name    string
		change  func(s *Subject)
		message string
	}{
		{"no name", func(s *Subject) { s.Name = "" }, "must have distinct names"},
		{"channels", func(s *Subject) { p := images; p.Channels = 0; s.InImages = &p }, "a: InImages: got 2880 pixels of 0 channels"},
		{"part of an image", func(s *Subject) { p := images; p.Pixels = p.Pixels[1:]; s.OutImages = &p }, "a: OutImages: got 2879 pixels"},
		{"images", func(s *Subject) { p := images; p.Pixels = p.Pixels[48:]; s.InImages = &p }, "InImages must have an image for each of 60 predictions, got 59"},
		{"NaN", func(s *Subject) { s.Trace = slices.Repeat([]float64{math.NaN()}, 60) }, "weightDensity: a, an optimizer: values must be finite, got NaN at 0"},
		{"nothing", func(s *Subject) { *s = Subject{Name: "a"} }, "0 sections"},
	} {
		subjects := slices.Clone(good)
		c.change(&subjects[0])
		refused(t, c.name, WritePage(t.TempDir(), "Roses", "", subjects), c.message)
	}
	refused(t, "no subject", WritePage(t.TempDir(), "Roses", "", nil), "at least 1 method, got none")
	refused(t, "no folder", WritePage(filepath.Join(t.TempDir(), "none"), "Roses", "", good), "report: Save")
}

func TestScoreTables(t *testing.T) {
	run := func(accuracy float64) *evaluate.Assessment {
		return &evaluate.Assessment{
			Case:   evaluate.Case{In: &evaluate.Predictions{Name: "roses"}},
			Values: evaluate.Values{"accuracy": accuracy, "confidence": 0.5},
		}
	}
	first, second := run(0.5), run(0.75)
	first.In.Classes, first.In.Probabilities = 2, []float64{0.9, 0.1, 0.2, 0.8}
	second.In.Classes, second.In.Probabilities = 2, []float64{0.6, 0.4, 0.7, 0.3}
	second.Out, second.Values["auroc"] = &evaluate.Predictions{Name: "weeds"}, 0.625
	subjects := []Subject{{Name: "a", Assessment: first}, {Name: "not assessed"}, {Name: "b", Assessment: second}}
	for _, c := range []struct {
		table func() (*Table, error)
		want  string
	}{
		{func() (*Table, error) { return ScoreTable(subjects) }, `score                     a       b
-----------------------------------
accuracy             0.5000  0.7500
confidence on roses   0.500   0.500
AUROC                     -  0.6250
`},
		{func() (*Table, error) { return AgreementTable(subjects, "a") }, `against a  agreement  total variation
-------------------------------------
b              0.500           0.4000
`},
		{func() (*Table, error) { return runTable([]Subject{subjects[0], subjects[2]}) }, `run  accuracy  confidence on roses   AUROC
------------------------------------------
a      0.5000                0.500       -
b      0.7500                0.500  0.6250
`},
		{func() (*Table, error) {
			return SeedsTable([]Subject{
				{Name: "a", SeedGroup: "A", Assessment: run(0.5)}, {Name: "single", SeedGroup: "B", Assessment: run(0.25)},
				{Name: "b", SeedGroup: "C", Assessment: run(0.25)}, {Name: "a2", SeedGroup: "A", Seed: 2, Assessment: run(0.75)},
				{Name: "no kind", Assessment: run(0)}, {Name: "no kind either", Assessment: run(0)},
				{Name: "a again", SeedGroup: "A", Assessment: run(0)}, {Name: "single again", SeedGroup: "B", Assessment: run(0)},
				{Name: "a3", SeedGroup: "A", Seed: 3, Assessment: run(1)}, {Name: "b2", SeedGroup: "C", Seed: 7, Assessment: run(0.25)}, {Name: "a4", SeedGroup: "A"},
			})
		}, `mean over seeds           a, 3 seeds       b, 2 seeds
-----------------------------------------------------
accuracy             0.7500 ± 0.1443  0.2500 ± 0.0000
confidence on roses    0.500 ± 0.000    0.500 ± 0.000
`},
	} {
		table, err := c.table()
		if err != nil {
			t.Fatal(err)
		}
		var b strings.Builder
		if err := table.WriteText(&b); err != nil {
			t.Fatal(err)
		}
		if b.String() != c.want {
			t.Errorf("got\n%swant\n%s", b.String(), c.want)
		}
	}
	for _, none := range []func() (*Table, error){
		func() (*Table, error) { return AgreementTable(subjects, "") },
		func() (*Table, error) { return ScoreTable(subjects[1:2]) },
		func() (*Table, error) { return DetectionTable(subjects[:2], true) },
		func() (*Table, error) { return SeedsTable(subjects) },
	} {
		if table, err := none(); table != nil || err != nil {
			t.Errorf("got table %v, %v, want none", table, err)
		}
	}
	_, err := AgreementTable(subjects, "not assessed")
	refused(t, "no predictions", err, `"not assessed" must have predictions`)
	_, err = AgreementTable(subjects[:2], "a")
	refused(t, "nothing to compare", err, `another subject than "a" must have predictions`)
}

// The table of detection has the columns of one run, a column for each of a few, a row for each of
// many.
func TestDetectionTable(t *testing.T) {
	subjects := func(runs int) []Subject {
		return drawn{runs: runs, classes: 3, examples: 20, labels: true, out: true}.subjects(t)
	}
	titles := ""
	for _, s := range evaluate.OODScores() {
		if s.Applies(subjects(1)[0].In) {
			titles += " " + s.Title
		}
	}
	for runs, want := range map[int]string{
		1: "OOD score AUROC AUPR out AUPR in FPR95 FPR95 in; 1 - confidence",
		4: "AUROC by a b long long long c d long long long; 1 - confidence",
		5: "run, AUROC by" + titles + "; a",
	} {
		table, err := DetectionTable(subjects(runs), true)
		if err != nil {
			t.Fatal(err)
		}
		var text strings.Builder
		if err := table.WriteText(&text); err != nil {
			t.Fatal(err)
		}
		lines := strings.Split(text.String(), "\n")
		got := strings.Join(strings.Fields(lines[0]), " ") + "; " + strings.Join(strings.Fields(lines[2]), " ")
		if !strings.HasPrefix(got, want+" ") {
			t.Errorf("%d runs: %q, want %q", runs, got, want)
		}
	}
}

// The wrong answers with the highest confidence come first, whichever subject gave them.
func TestMistakes(t *testing.T) {
	of := func(probabilities ...float64) Subject {
		p, err := evaluate.NewPredictions("roses", probabilities, []int32{0, 0, 1, 1}, 2)
		if err != nil {
			t.Fatal(err)
		}
		return Subject{Assessment: &evaluate.Assessment{Case: evaluate.Case{In: p}}}
	}
	subjects := []Subject{of(1, 0, 0.3, 0.7, 0.2, 0.8, 0.6, 0.4), of(1, 0, 0.4, 0.6, 0.1, 0.9, 0.9, 0.1)}
	if got := mistakes(subjects); !slices.Equal(got, []int{3, 1}) {
		t.Errorf("got %v, want 3, which the second took for 0 with .9, and 1", got)
	}
	pairs := topConfusions(subjects, 5)
	if len(pairs) != 2 || pairs[0].total != 2 || pairs[0].label != 0 || pairs[0].answer != 1 || !slices.Equal(pairs[1].counts, []int{1, 1}) {
		t.Errorf("got pairs %+v, want 0 taken for 1 and 1 taken for 0, once by each", pairs)
	}
	if got := exampleNumbers(subjects[0].In); !slices.Equal(got, []int{0, 2, 1, 3}) {
		t.Errorf("examples %v, want one of each class first", got)
	}
	// Twelve roses taken for tulips, with rising confidence, and one tulip, with less, for a rose.
	var probabilities []float64
	labels := make([]int32, 13)
	for i := range 12 {
		probabilities = append(probabilities, 0.2-float64(i)/100, 0.8+float64(i)/100)
	}
	labels[12] = 1
	repeated, err := evaluate.NewPredictions("roses", append(probabilities, 0.6, 0.4), labels, 2)
	if err != nil {
		t.Fatal(err)
	}
	same := []Subject{{Assessment: &evaluate.Assessment{Case: evaluate.Case{In: repeated}}}}
	if got := mistakes(same); !slices.Equal(got, []int{11, 10, 9, 8, 7, 6, 5, 4, 3, 12}) {
		t.Errorf("got %v, want the rarer mistake among ten, and the surest of the other", got)
	}
	unlabelled, err := evaluate.NewPredictions("roses", slices.Repeat([]float64{0.5}, 40), nil, 2)
	if err != nil {
		t.Fatal(err)
	}
	if got := exampleNumbers(unlabelled); !slices.Equal(got, []int{0, 4, 8, 12, 16}) {
		t.Errorf("examples %v, want them spread over 20", got)
	}
}

// Memory is linear in the images and classes: with thousands of classes, a matrix of all pairs
// would take most of the machine.
func TestConfusionsOfManyClasses(t *testing.T) {
	const classes = 1 << 12
	probabilities := make([]float64, 3*classes)
	for i, answer := range []int{7, 7, classes - 1} {
		probabilities[i*classes+answer] = 1
	}
	p, err := evaluate.NewPredictions("many", probabilities, []int32{5, 5, 5}, classes)
	if err != nil {
		t.Fatal(err)
	}
	subjects := []Subject{{Assessment: &evaluate.Assessment{Case: evaluate.Case{In: p}}}}
	var pairs []confusion
	used := testenv.Allocated(func() { pairs = topConfusions(subjects, 5) })
	want := []confusion{{5, 7, []int{2}, 2}, {5, classes - 1, []int{1}, 1}}
	if !reflect.DeepEqual(pairs, want) {
		t.Errorf("pairs %+v, want %+v", pairs, want)
	}
	if used > 1<<20 {
		t.Errorf("%d bytes were allocated, want at most 1 MiB", used)
	}
}

func TestPictures(t *testing.T) {
	at := func(img image.Image, x, y int) color.RGBA { return color.RGBAModel.Convert(img.At(x, y)).(color.RGBA) }
	coloured := &Images{Pixels: []byte{9, 9, 9, 9, 9, 9, 1, 2, 3, 4, 5, 6}, Channels: 3, Height: 1, Width: 2, Ink: true}
	img := coloured.render(1)
	if size := img.Bounds().Size(); size != image.Pt(240, 120) {
		t.Errorf("a picture of 2 x 1 is drawn with %v pixels", size)
	}
	if got, want := at(img, 119, 60), (color.RGBA{R: 1, G: 3, B: 5, A: 255}); got != want {
		t.Errorf("left: got %v, want %v", got, want)
	}
	if got, want := at(img, 120, 60), (color.RGBA{R: 2, G: 4, B: 6, A: 255}); got != want {
		t.Errorf("right: got %v, want %v", got, want)
	}
	opaque := &Images{Pixels: []byte{1, 2, 3, 99}, Channels: 4, Height: 1, Width: 1, Ink: true}
	if got, want := at(opaque.render(0), 0, 0), (color.RGBA{R: 1, G: 2, B: 3, A: 255}); got != want {
		t.Errorf("four channels: got %v, want %v", got, want)
	}
	for ink, want := range map[bool]uint8{false: 100, true: 155} {
		large := &Images{Pixels: slices.Repeat([]byte{100}, 500*1000), Channels: 1, Height: 500, Width: 1000, Ink: ink}
		img = large.render(0)
		if size := img.Bounds().Size(); size != image.Pt(240, 120) {
			t.Errorf("a large picture is drawn with %v pixels", size)
		}
		if got := at(img, 50, 50); got != (color.RGBA{R: want, G: want, B: want, A: 255}) {
			t.Errorf("ink %v: got %v, want %d", ink, got, want)
		}
	}
	if name := coloured.className(3); name != "3" {
		t.Errorf("a class without a name is called %q, want its number", name)
	}
}

func TestTicksOfSharesAndSizes(t *testing.T) {
	for _, c := range []struct {
		ticks     func(low, high float64) []plot.Tick
		low, high float64
		want      string
	}{
		{rootTicks, 0, 1, "0 0.05 0.2 0.5 1"},
		{rootTicks, 0, 0.3, "0 0.01 0.05"},
		{wholeTicks, -0.5, 2.5, "0 1 2"},
		{wholeTicks, -0.5, 37.5, "0 4 8 12 16 20 24 28 32 36"},
	} {
		if got := labels(c.ticks(c.low, c.high)); got != c.want {
			t.Errorf("ticks of [%v, %v]: got %q, want %q", c.low, c.high, got, c.want)
		}
	}
}

// Coverage by level equals a direct count, and levels that the held-out examples do not support
// are missing.
func TestCoverageByLevel(t *testing.T) {
	d := whole
	d.examples = 30 // 60 held out: up to level 0.98
	s := d.subjects(t)[1]
	points, err := coverageByLevel(s)
	if err != nil {
		t.Fatal(err)
	}
	if len(points) != 49 {
		t.Fatalf("%d levels, want those from .50 to .98", len(points))
	}
	for _, p := range points {
		sets, err := s.Calibration.PredictionSets(s.In.Probabilities, s.In.Classes, p.X, evaluate.SetRule{AllowEmpty: true})
		if err != nil {
			t.Fatal(err)
		}
		covered := 0.0
		for n, set := range sets {
			if slices.Contains(set, int(s.In.Labels[n])) {
				covered++
			}
		}
		near(t, "coverage", p.Y, covered/30, 1e-12)
	}
}
