package detector

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/pkg/errors"
)

var small = Shape{Channels: 3, Height: 6, Width: 5}

// normals returns n rows of correlated normal features around a mean.
func normals(random *rand.Rand, n, features int, mean float32) []float32 {
	rows := make([]float32, n*features)
	for i := range n {
		common := random.NormFloat64()
		for j := range features {
			rows[i*features+j] = mean + float32(common*float64(j%3)+random.NormFloat64()*float64(1+j%5))
		}
	}
	return rows
}

func noise(random *rand.Rand, n int) []byte {
	pixels := make([]byte, n*small.size())
	for i := range pixels {
		pixels[i] = byte(random.UintN(256))
	}
	return pixels
}

// fitted returns a detector of 120 images of noise with two members of the given number of
// features.
func fitted(t testing.TB, features int) *Detector {
	t.Helper()
	random := rand.New(rand.NewPCG(41, 1))
	f, err := NewFitter(noise(random, 120), small, 5)
	if err != nil {
		t.Fatal(err)
	}
	for _, position := range []int{1, 4} {
		if err := f.Add(position, normals(random, 120, features, 3)); err != nil {
			t.Fatal(err)
		}
	}
	d, err := f.Detector()
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// scored scores images whose features are added in steps of some rows.
func scored(t testing.TB, d *Detector, pixels []byte, features []float32, step int) Scores {
	t.Helper()
	s := d.Scorer(pixels, small)
	width := d.Members[0].Space.features()
	n := len(features) / width
	for member := range d.Members {
		for first := 0; first < n; first += step {
			if err := s.Add(member, first, features[first*width:min(first+step, n)*width]); err != nil {
				t.Fatal(err)
			}
		}
	}
	scores, err := s.Scores()
	if err != nil {
		t.Fatal(err)
	}
	return scores
}

// TestDistancesAgainstDefinitions compares with naive loops in float64.
func TestDistancesAgainstDefinitions(t *testing.T) {
	random := rand.New(rand.NewPCG(42, 1))
	const n, f = 50, 4
	training, rows := normals(random, n, f, 3), normals(random, 9, f, 5)
	s, err := fitSpace(training, f)
	if err != nil {
		t.Fatal(err)
	}
	var mean, std [f]float64
	for j := range f {
		for i := range n {
			mean[j] += float64(training[i*f+j]) / n
		}
		for i := range n {
			std[j] += math.Pow(float64(training[i*f+j])-mean[j], 2) / n
		}
		std[j] = math.Sqrt(std[j])
	}
	standard := func(rows []float32, i, j int) float64 { return (float64(rows[i*f+j]) - mean[j]) / std[j] }
	nearest, projected := s.nearest(s.project(rows)), s.project(rows)
	mahalanobis := s.mahalanobis(projected)
	for i := range 9 {
		var distances []float64
		for k := range n {
			sum := 0.0
			for j := range f {
				sum += math.Pow(standard(rows, i, j)-standard(training, k, j), 2)
			}
			distances = append(distances, math.Sqrt(sum))
		}
		slices.Sort(distances)
		want := 0.0
		for _, d := range distances[:neighbours] {
			want += d / neighbours
		}
		if math.Abs(nearest[i]-want) > 1e-4 {
			t.Errorf("row %d: %v from its neighbours, want %v", i, nearest[i], want)
		}
		// z' C^-1 z by Gaussian elimination of C x = z.
		var c [f][f + 1]float64
		for j := range f {
			for k := range f {
				for m := range n {
					c[j][k] += standard(training, m, j) * standard(training, m, k) / n
				}
			}
			c[j][j] *= 1 + shrinkage
			c[j][f] = standard(rows, i, j)
		}
		for j := range f {
			for k := range f {
				if k != j {
					factor := c[k][j] / c[j][j]
					for m := range f + 1 {
						c[k][m] -= factor * c[j][m]
					}
				}
			}
		}
		square := 0.0
		for j := range f {
			square += standard(rows, i, j) * c[j][f] / c[j][j]
		}
		if want := math.Sqrt(square); math.Abs(mahalanobis[i]-want) > 1e-3*want {
			t.Errorf("row %d: Mahalanobis distance %v, want %v", i, mahalanobis[i], want)
		}
	}
}

// TestProjectionKeepsDistances: many features are compared in few dimensions.
func TestProjectionKeepsDistances(t *testing.T) {
	random := rand.New(rand.NewPCG(43, 1))
	s, err := fitSpace(normals(random, 200, 400, 0), 400)
	if err != nil {
		t.Fatal(err)
	}
	if len(s.Bank) != 200*maxDimensions {
		t.Fatalf("the bank has %d numbers, want %d", len(s.Bank), 200*maxDimensions)
	}
	near, far := s.nearest(s.project(normals(random, 50, 400, 0))), s.nearest(s.project(normals(random, 50, 400, 3)))
	if slices.Max(near) >= slices.Min(far) {
		t.Errorf("distances up to %v, and from %v of rows far away", slices.Max(near), slices.Min(far))
	}
}

// TestScoresDoNotDependOnParts: not on how features arrive, nor on threads or other images, bit by
// bit, and a detector is the same after it was written and read.
func TestScoresDoNotDependOnParts(t *testing.T) {
	random := rand.New(rand.NewPCG(44, 1))
	d := fitted(t, 90)
	pixels, features := noise(random, 150), normals(random, 150, 90, 3)
	want := scored(t, d, pixels, features, 150)
	text, err := json.Marshal(d)
	if err != nil {
		t.Fatal(err)
	}
	read := &Detector{}
	if err := json.Unmarshal(text, read); err != nil {
		t.Fatal(err)
	}
	if err := read.Prepare(small); err != nil {
		t.Fatal(err)
	}
	for _, step := range []int{1, 7, 64, 100} {
		if got := scored(t, read, pixels, features, step); !slices.Equal(got.Combined, want.Combined) {
			t.Errorf("in steps of %d images the scores differ", step)
		}
	}
	alone := scored(t, read, pixels[:small.size()], features[:90], 1)
	if alone.Combined[0] != want.Combined[0] {
		t.Errorf("one image has the score %v, and %v among others", alone.Combined[0], want.Combined[0])
	}
}

// TestStrangeImagesScoreHigher by each score, and about one in twenty own ones scores above 1 by
// each of the three that are combined.
func TestStrangeImagesScoreHigher(t *testing.T) {
	random := rand.New(rand.NewPCG(45, 1))
	d := fitted(t, 90)
	own := scored(t, d, noise(random, 400), normals(random, 400, 90, 3), 400)
	above := 0
	for _, v := range own.Combined {
		if v > 1 {
			above++
		}
	}
	if above < 10 || above > 160 {
		t.Errorf("%d of 400 own images score above 1", above)
	}
	grey := make([]byte, 5*small.size())
	features := normals(random, 5, 90, 30)
	strange := scored(t, d, grey, features, 5)
	for name, of := range map[string]func(Scores) []float64{
		"neighbours":  func(s Scores) []float64 { return s.Neighbours },
		"mahalanobis": func(s Scores) []float64 { return s.Mahalanobis },
		"statistics":  func(s Scores) []float64 { return s.Statistics },
		"combined":    func(s Scores) []float64 { return s.Combined },
	} {
		if most, least := slices.Max(of(own)), slices.Min(of(strange)); least <= most {
			t.Errorf("%s: strange images from %v, own ones up to %v", name, least, most)
		}
	}
	huge := scored(t, d, grey, slices.Repeat([]float32{math.MaxFloat32}, 5*90), 5)
	if v := huge.Combined[0]; !(v > 1e3) || math.IsInf(v, 0) {
		t.Errorf("huge features: %v", v)
	}
}

func TestFewImages(t *testing.T) {
	for n := range 8 {
		f, err := NewFitter(make([]byte, n*small.size()), small, 1)
		if n < 2 {
			if !errors.As(err, new(*UnfitError)) {
				t.Errorf("%d images: %v", n, err)
			}
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.Detector(); err == nil {
			t.Errorf("%d images: no error without features", n)
		}
		if err := f.Add(0, make([]float32, n*3)); err != nil { // all equal
			t.Fatal(err)
		}
		d, err := f.Detector()
		if err != nil {
			t.Fatal(err)
		}
		if v := scored(t, d, make([]byte, small.size()), make([]float32, 3), 1).Combined[0]; v != v || v > 1 {
			t.Errorf("%d images: the same image scores %v", n, v)
		}
	}
	f, err := NewFitter(make([]byte, 3*small.size()), small, 1)
	if err != nil {
		t.Fatal(err)
	}
	for _, bad := range []float32{float32(math.NaN()), float32(math.Inf(1))} {
		if err := f.Add(0, []float32{1, bad, 2}); !errors.As(err, new(*UnfitError)) {
			t.Errorf("feature %v: %v", bad, err)
		}
	}
}

// TestScorerRefuses features that do not match.
func TestScorerRefuses(t *testing.T) {
	d := fitted(t, 7)
	s := d.Scorer(make([]byte, 2*small.size()), small)
	if s.Add(0, 0, make([]float32, 13)) == nil || s.Add(0, 1, make([]float32, 14)) == nil {
		t.Error("no error for other features")
	}
	if err := s.Add(0, 0, make([]float32, 14)); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Scores(); err == nil || !strings.Contains(err.Error(), "4 in total, got 2") {
		t.Errorf("without the second member: %v", err)
	}
}

func TestPrepareRefuses(t *testing.T) {
	for name, change := range map[string]func(d *Detector){
		"must have statistics":   func(d *Detector) { d.Statistics = nil },
		"and members":            func(d *Detector) { d.Members = nil },
		"must ascend below 5":    func(d *Detector) { d.Members[1].Position = 5 },
		"got 1 after 1":          func(d *Detector) { d.Members[1].Position = 1 },
		"has no features":        func(d *Detector) { d.Members[0].Space = nil },
		"as many scales":         func(d *Detector) { s := d.Members[0].Space; s.Scale = s.Scale[1:] },
		"0 and 4":                func(d *Detector) { d.Members[0].Space.Bank = nil },
		"scales must be positiv": func(d *Detector) { d.Members[0].Space.Scale[0] = 0 },
		"2x2 matrix":             func(d *Detector) { s := d.Members[0].Space; s.Whitening = s.Whitening[1:] },
		"images have 22":         func(d *Detector) { d.Statistics = d.Members[0].Space },
	} {
		d := fitted(t, 2)
		change(d)
		if err := d.Prepare(small); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("got error %v, want one containing %q", err, name)
		}
	}
	for _, bad := range []string{`"AAA="`, `"AADAfw=="`, `"?"`, `3`} { // three bytes, NaN, no base64
		if err := json.Unmarshal([]byte(bad), new(vector)); err == nil {
			t.Errorf("%s: no error", bad)
		}
	}
}

// FuzzDetector reads what is not a detector, and scores with what is accepted.
func FuzzDetector(f *testing.F) {
	text, err := json.Marshal(fitted(f, 3))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(text)
	f.Add([]byte(`{"samples":1,"members":[{"space":{"center":"AACAPw=="}}]}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		d := &Detector{}
		if json.Unmarshal(text, d) != nil || d.Prepare(small) != nil {
			return
		}
		s := d.Scorer(make([]byte, small.size()), small)
		for member, m := range d.Members {
			if err := s.Add(member, 0, make([]float32, m.Space.features())); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := s.Scores(); err != nil {
			t.Fatal(err)
		}
	})
}
