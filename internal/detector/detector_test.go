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

// cycled returns n labels of some classes in turn.
func cycled(n, classes int) []int32 {
	labels := make([]int32, n)
	for i := range labels {
		labels[i] = int32(i % classes)
	}
	return labels
}

// fitted returns a detector of 120 images of noise with two members of the given number of
// features.
func fitted(t testing.TB, features int) *Detector {
	t.Helper()
	random := rand.New(rand.NewPCG(41, 1))
	f, err := NewFitter(noise(random, 120), cycled(120, 3), small, 5)
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
	nearest := s.nearest(s.project(rows))
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
	}
}

// TestMahalanobisAgainstDefinition compares with Gaussian elimination in float64.
func TestMahalanobisAgainstDefinition(t *testing.T) {
	random := rand.New(rand.NewPCG(46, 1))
	const n, d, classes = 60, 4, 3
	training, rows, labels := normals(random, n, d, 1), normals(random, 9, d, 2), make([]int32, n)
	for i := range n {
		labels[i] = []int32{7, 0, 3}[i*i%classes]
		training[i*d] += 4 * float32(labels[i])
	}
	g, err := fitGaussians(training, d, labels)
	if err != nil {
		t.Fatal(err)
	}
	means, sizes := map[int32][]float64{}, map[int32]float64{}
	for _, label := range labels {
		means[label] = make([]float64, d)
		sizes[label]++
	}
	if len(g.Means) != len(means)*d {
		t.Fatalf("%d numbers of means, want %d classes of %d", len(g.Means), len(means), d)
	}
	for i, label := range labels {
		for j := range d {
			means[label][j] += float64(training[i*d+j]) / sizes[label]
		}
	}
	var covariance [d][d]float64
	trace := 0.0
	for i, label := range labels {
		for j := range d {
			for k := range d {
				covariance[j][k] += (float64(training[i*d+j]) - means[label][j]) * (float64(training[i*d+k]) - means[label][k]) / n
			}
		}
	}
	for j := range d {
		trace += covariance[j][j]
	}
	for j := range d {
		covariance[j][j] += shrinkage * trace / d
	}
	// distance returns z' C^-1 z by elimination of C x = z.
	distance := func(z [d]float64) (square float64) {
		c, x := covariance, z
		for j := range d {
			for k := range d {
				if k == j {
					continue
				}
				factor := c[k][j] / c[j][j]
				for m := range d {
					c[k][m] -= factor * c[j][m]
				}
				x[k] -= factor * x[j]
			}
		}
		for j := range d {
			square += z[j] * x[j] / c[j][j]
		}
		return square
	}
	for i, got := range g.nearest(rows) {
		want := math.Inf(1)
		for _, mean := range means {
			var z [d]float64
			for j := range d {
				z[j] = float64(rows[i*d+j]) - mean[j]
			}
			want = min(want, distance(z))
		}
		if math.Abs(got-want) > 1e-3*want {
			t.Errorf("row %d: squared Mahalanobis distance %v, want %v", i, got, want)
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

// TestStrangeImagesScoreHigher by each score but that for near images, and about one in twenty own
// ones scores above 1 by each of the three that are combined.
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
		"neighbours": func(s Scores) []float64 { return s.Neighbours },
		"statistics": func(s Scores) []float64 { return s.Statistics },
		"combined":   func(s Scores) []float64 { return s.Combined },
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

// TestANewClassScoresHigher: its features lie among those of the known classes, nearer to their
// common mean than any of them. Only the relative Mahalanobis distance sees it.
func TestANewClassScoresHigher(t *testing.T) {
	random := rand.New(rand.NewPCG(47, 1))
	const features, classes = 20, 4
	// Class c differs from the common mean in feature c, and a class that is not known in none.
	rows := func(n, first int) []float32 {
		rows := make([]float32, n*features)
		for i := range n {
			for j := range features {
				rows[i*features+j] = float32(random.NormFloat64())
			}
			rows[i*features+first+i%classes] += 10
		}
		return rows
	}
	f, err := NewFitter(noise(random, 600), cycled(600, classes), small, 1)
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Add(0, rows(600, 0)); err != nil {
		t.Fatal(err)
	}
	d, err := f.Detector()
	if err != nil {
		t.Fatal(err)
	}
	own := scored(t, d, noise(random, 100), rows(100, 0), 100)
	unknown := make([]float32, 100*features)
	for i := range unknown {
		unknown[i] = float32(random.NormFloat64() + 2)
	}
	other := scored(t, d, noise(random, 100), unknown, 100)
	if most, least := slices.Max(own.RelativeMahalanobis), slices.Min(other.RelativeMahalanobis); least <= most {
		t.Errorf("relative Mahalanobis distances from %v, of known classes up to %v", least, most)
	}
}

// TestOneClass has no relative distance, not even by rounding.
func TestOneClass(t *testing.T) {
	random := rand.New(rand.NewPCG(48, 1))
	f, err := NewFitter(noise(random, 90), make([]int32, 90), small, 1)
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Add(0, normals(random, 90, 30, 2)); err != nil {
		t.Fatal(err)
	}
	d, err := f.Detector()
	if err != nil {
		t.Fatal(err)
	}
	for i, v := range scored(t, d, noise(random, 20), normals(random, 20, 30, 5), 20).RelativeMahalanobis {
		if v != 0 {
			t.Errorf("image %d: %v, want 0", i, v)
		}
	}
}

func TestFewImages(t *testing.T) {
	for n := range 8 {
		f, err := NewFitter(make([]byte, n*small.size()), cycled(n, 4), small, 1)
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
	if _, err := NewFitter(make([]byte, 3*small.size()), make([]int32, 2), small, 1); err == nil {
		t.Error("no error for two labels of three images")
	}
	f, err := NewFitter(make([]byte, 3*small.size()), make([]int32, 3), small, 1)
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
		"must have 2 scales":     func(d *Detector) { s := d.Members[0].Space; s.Scale = s.Scale[1:] },
		"got 2 and 0 numbers":    func(d *Detector) { d.Members[0].Space.Bank = nil },
		"scales must be positiv": func(d *Detector) { d.Members[0].Space.Scale[0] = 0 },
		"2x2 matrix":             func(d *Detector) { g := d.Members[0].Classes; g.Whitening = g.Whitening[1:] },
		"rows of 2 means":        func(d *Detector) { g := d.Members[0].All; g.Means = g.Means[1:] },
		"no distributions":       func(d *Detector) { d.Members[1].All = nil },
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
