package detector

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/pkg/errors"
	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/stat"
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
	width := d.Members[0].Subspace.features()
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
	s := fitSpace(training, f)
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
	nearest := s.nearest(s.standardise(rows))
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

// TestSubspaceAgainstDefinition compares distances of fewer and of more features than rows with the
// inverse of the covariance that the axes describe, in float64.
func TestSubspaceAgainstDefinition(t *testing.T) {
	for _, c := range []struct{ n, features int }{{90, 6}, {300, 80}, {40, 100}} {
		random := rand.New(rand.NewPCG(43, 1))
		training, rows := normals(random, c.n, c.features, 2), normals(random, 9, c.features, 1)
		s, err := fitSubspace(training, c.features)
		if err != nil {
			t.Fatal(err)
		}
		// unit is a unit vector of the roots of features over their root mean squares.
		unit := func(row []float32) *mat.VecDense {
			v := mat.NewVecDense(c.features, nil)
			for j, x := range row {
				squares := 0.0
				for i := range c.n {
					squares += math.Pow(float64(training[i*c.features+j]), 2) / float64(c.n)
				}
				v.SetVec(j, math.Copysign(math.Sqrt(math.Abs(float64(x))/math.Sqrt(squares)), float64(x)))
			}
			v.ScaleVec(1/mat.Norm(v, 2), v)
			return v
		}
		var units []*mat.VecDense
		mean := mat.NewVecDense(c.features, nil)
		for row := range slices.Chunk(training, c.features) {
			units = append(units, unit(row))
			mean.AddScaledVec(mean, 1/float64(c.n), units[len(units)-1])
		}
		covariance := mat.NewSymDense(c.features, nil)
		for _, u := range units {
			var deviation mat.VecDense
			deviation.SubVec(u, mean)
			covariance.SymRankOne(covariance, 1/float64(c.n), &deviation)
		}
		var svd mat.SVD
		if !svd.Factorize(covariance, mat.SVDFull) {
			t.Fatal("no singular values")
		}
		values, sum := svd.Values(nil), mat.Trace(covariance)
		rest := sum
		k := min(maxAxes, c.features, c.n)
		for _, v := range values[:k] {
			rest -= v
		}
		floor := minResidual * sum / float64(c.features)
		if c.features > k {
			floor = max(floor, rest/float64(c.features-k))
		}
		var axes mat.Dense
		svd.UTo(&axes)
		got := s.mahalanobis(s.project(rows))
		for i, row := range slices.Collect(slices.Chunk(rows, c.features)) {
			var deviation mat.VecDense
			deviation.SubVec(unit(row), mean)
			want := 0.0
			for j := range c.features {
				variance := floor
				if j < k {
					variance = max(values[j], floor)
				}
				want += math.Pow(mat.Dot(axes.ColView(j), &deviation), 2) / variance
			}
			if want = math.Sqrt(want); math.Abs(got[i]-want) > 1e-4*want {
				t.Errorf("%d rows of %d features, row %d: %v, want %v", c.n, c.features, i, got[i], want)
			}
		}
	}
}

// TestContrastDoesNotMatter: features of twice the size have the same direction.
func TestContrastDoesNotMatter(t *testing.T) {
	random := rand.New(rand.NewPCG(49, 1))
	s, err := fitSubspace(normals(random, 100, 30, 2), 30)
	if err != nil {
		t.Fatal(err)
	}
	rows := normals(random, 10, 30, 2)
	want := s.mahalanobis(s.project(rows))
	for i := range rows {
		rows[i] *= 2
	}
	for i, v := range s.mahalanobis(s.project(rows)) {
		if math.Abs(v-want[i]) > 1e-4*want[i] {
			t.Errorf("row %d: %v, want %v", i, v, want[i])
		}
	}
}

// TestScoresDoNotDependOnParts: the bits of scores do not depend on how features arrive, on
// threads or on other images, and a detector is the same after it was written and read.
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

// TestStrangeImagesScoreHigher by each score except that for near images. About one in twenty own
// images scores above 1 by each of the three scores that are combined.
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
	features := normals(random, 5, 90, -30)
	strange := scored(t, d, grey, features, 5)
	for name, of := range map[string]func(Scores) []float64{
		"mahalanobis": func(s Scores) []float64 { return s.Mahalanobis },
		"statistics":  func(s Scores) []float64 { return s.Statistics },
		"combined":    func(s Scores) []float64 { return s.Combined },
	} {
		if most, least := slices.Max(of(own)), slices.Min(of(strange)); least <= most {
			t.Errorf("%s: strange images from %v, own ones up to %v", name, least, most)
		}
	}
	huge := scored(t, d, grey, slices.Repeat([]float32{-math.MaxFloat32}, 5*90), 5)
	if v := huge.Mahalanobis[0]; !(v > slices.Max(own.Mahalanobis)) || math.IsInf(v, 0) {
		t.Errorf("huge features: %v", v)
	}
}

func TestCombine(t *testing.T) {
	for _, c := range []struct {
		scaled []float64
		want   float64
	}{{[]float64{3, -7, 4}, 5}, {[]float64{-3, -1, -2}, -1}, {[]float64{0, -1, 0}, 0}, {[]float64{1, 2, 2}, 3}} {
		if got := combine(c.scaled...); got != c.want {
			t.Errorf("%v: %v, want %v", c.scaled, got, c.want)
		}
	}
}

// TestANewClassScoresHigher: the features of the new class lie between the known classes' features.
// Only the relative Mahalanobis distance detects it.
func TestANewClassScoresHigher(t *testing.T) {
	random := rand.New(rand.NewPCG(47, 1))
	const features, classes = 20, 4
	// Feature c responds to class c, and all of them a little to one that is not known.
	rows := func(n int, known bool) []float32 {
		rows := make([]float32, n*features)
		for i := range n {
			for j := range features {
				rows[i*features+j] = float32(math.Abs(random.NormFloat64()))
			}
			for c := range classes {
				switch {
				case !known:
					rows[i*features+c] += 10.0 / classes
				case c == i%classes:
					rows[i*features+c] += 10
				}
			}
		}
		return rows
	}
	f, err := NewFitter(noise(random, 600), cycled(600, classes), small, 1)
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Add(0, rows(600, true)); err != nil {
		t.Fatal(err)
	}
	d, err := f.Detector()
	if err != nil {
		t.Fatal(err)
	}
	own := scored(t, d, noise(random, 100), rows(100, true), 100)
	other := scored(t, d, noise(random, 100), rows(100, false), 100)
	if most, mean := slices.Max(own.Mahalanobis), stat.Mean(other.Mahalanobis, nil); mean > most {
		t.Errorf("Mahalanobis distances of %v on average, of known classes up to %v", mean, most)
	}
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
		"has no subspace":        func(d *Detector) { d.Members[0].Subspace = nil },
		"must have 2 scales":     func(d *Detector) { s := d.Members[0].Subspace; s.Scale = s.Scale[1:] },
		"got 2 and 0 numbers":    func(d *Detector) { d.Members[0].Subspace.Axes = nil },
		"must be positive":       func(d *Detector) { d.Members[0].Subspace.Scale[0] = 0 },
		"positive, got -1":       func(d *Detector) { d.Members[0].Subspace.Variances[1] = -1 },
		"positive, got -2":       func(d *Detector) { d.Members[0].Subspace.Residual = -2 },
		"must have 22 scales":    func(d *Detector) { s := d.Statistics; s.Scale = s.Scale[1:] },
		"got 22 and 0 numbers":   func(d *Detector) { d.Statistics.Bank = nil },
		"scales must be positiv": func(d *Detector) { d.Statistics.Scale[0] = 0 },
		"2x2 matrix":             func(d *Detector) { g := d.Members[0].Classes; g.Whitening = g.Whitening[1:] },
		"rows of 2 means":        func(d *Detector) { g := d.Members[0].All; g.Means = g.Means[1:] },
		"no distributions":       func(d *Detector) { d.Members[1].All = nil },
		"images have 22": func(d *Detector) {
			s := d.Statistics
			s.Center, s.Scale, s.Bank = s.Center[:2], s.Scale[:2], s.Bank[:2]
		},
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

// FuzzDetector reads damaged detectors, and scores images with those that are accepted.
func FuzzDetector(f *testing.F) {
	text, err := json.Marshal(fitted(f, 3))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(text)
	f.Add([]byte(`{"samples":1,"members":[{"subspace":{"center":"AACAPw=="}}]}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		d := &Detector{}
		if json.Unmarshal(text, d) != nil || d.Prepare(small) != nil {
			return
		}
		s := d.Scorer(make([]byte, small.size()), small)
		for member, m := range d.Members {
			if err := s.Add(member, 0, make([]float32, m.Subspace.features())); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := s.Scores(); err != nil {
			t.Fatal(err)
		}
	})
}
