package diagnostics_test

import (
	"math"
	"strings"
	"testing"

	"gonum.org/v1/gonum/integrate/quad"
	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"

	"github.com/pollen-ml/pollen/diagnostics"
	"github.com/pollen-ml/pollen/langevin/trial"
	"github.com/pollen-ml/pollen/tensor/random"
)

var usualKernel = diagnostics.InverseMultiquadric{Scale: 1, Exponent: -0.5}

// Worked by hand for the standard normal, whose score is -x, and the samples 0 and 1:
// k0(0, 0) = 0 + 1, k0(1, 1) = 1 + 1, and with q = 2
// k0(0, 1) = 0 - 2^(-3/2) + 2^(-3/2) - 3 2^(-5/2).
func TestSteinDiscrepancyByHand(t *testing.T) {
	v, u, err := diagnostics.SteinDiscrepancy(usualKernel, [][]float64{{0}, {1}}, [][]float64{{0}, {-1}})
	if err != nil {
		t.Fatal(err)
	}
	across := -3 * math.Pow(2, -2.5)
	if want := (1 + 2 + 2*across) / 4; math.Abs(v-want) > 1e-15 {
		t.Errorf("V-statistic is %v, want %v", v, want)
	}
	if math.Abs(u-across) > 1e-15 {
		t.Errorf("U-statistic is %v, want %v", u, across)
	}
}

// steinByDifferences is k0 with the kernel's derivatives by central differences.
func steinByDifferences(k diagnostics.InverseMultiquadric, x, y, sx, sy []float64) float64 {
	const step = 1e-3
	at := func(i int, dx, dy float64) float64 {
		q := k.Scale * k.Scale
		for j := range x {
			r := x[j] - y[j]
			if j == i {
				r += dx - dy
			}
			q += r * r
		}
		return math.Pow(q, k.Exponent)
	}
	sum := 0.0
	for i := range x {
		sum += sx[i] * sy[i] * at(i, 0, 0)
		sum += sx[i] * (at(i, 0, step) - at(i, 0, -step)) / (2 * step)
		sum += sy[i] * (at(i, step, 0) - at(i, -step, 0)) / (2 * step)
		sum += (at(i, step, step) - at(i, step, -step) - at(i, -step, step) + at(i, -step, -step)) / (4 * step * step)
	}
	return sum
}

func TestSteinDiscrepancyAgainstDifferences(t *testing.T) {
	for stream, c := range []struct {
		kernel        diagnostics.InverseMultiquadric
		n, dimensions int
	}{
		{usualKernel, 2, 1}, {usualKernel, 7, 3}, {diagnostics.InverseMultiquadric{Scale: 1.7, Exponent: -0.8}, 5, 33},
		{diagnostics.InverseMultiquadric{Scale: 0.6, Exponent: -0.1}, 9, 2},
	} {
		samples, scores := normalStates(c.n, c.dimensions, uint16(40+stream)), normalStates(c.n, c.dimensions, uint16(50+stream))
		v, u, err := diagnostics.SteinDiscrepancy(c.kernel, samples, scores)
		if err != nil {
			t.Fatal(err)
		}
		all, different := 0.0, 0.0
		for i := range samples {
			for j := range samples {
				term := steinByDifferences(c.kernel, samples[i], samples[j], scores[i], scores[j])
				all += term
				if i != j {
					different += term
				}
			}
		}
		n := float64(c.n)
		if want := all / (n * n); math.Abs(v-want) > 1e-5*math.Abs(want)+1e-5 {
			t.Errorf("%+v, %d samples of %d: V-statistic is %v, want %v", c.kernel, c.n, c.dimensions, v, want)
		}
		if want := different / (n * (n - 1)); math.Abs(u-want) > 1e-5*math.Abs(want)+1e-5 {
			t.Errorf("%+v, %d samples of %d: U-statistic is %v, want %v", c.kernel, c.n, c.dimensions, u, want)
		}
	}
}

// normalStates are standard normals [n d].
func normalStates(n, dimensions int, stream uint16) [][]float64 {
	z := trial.NormalDraws(n*dimensions, stream)
	states := make([][]float64, n)
	for i := range states {
		states[i] = z[i*dimensions : (i+1)*dimensions]
	}
	return states
}

// steinOfNormal is the mean U-statistic, of samples from N(mean, deviation^2) in one dimension
// against the standard normal, and its standard error, from independent sets of samples.
func steinOfNormal(t *testing.T, mean, std float64) (u, standardError float64) {
	t.Helper()
	const sets, n = 60, 50
	z := trial.NormalDraws(sets*n, 61)
	values := make([]float64, sets)
	for set := range values {
		var samples, scores [][]float64
		for _, v := range z[set*n : (set+1)*n] {
			x := mean + std*v
			samples, scores = append(samples, []float64{x}), append(scores, []float64{-x})
		}
		v, u, err := diagnostics.SteinDiscrepancy(usualKernel, samples, scores)
		if err != nil {
			t.Fatal(err)
		}
		if v < 0 {
			t.Fatalf("V-statistic is %v, which is negative", v)
		}
		values[set] = u
	}
	return stat.Mean(values, nil), stat.StdDev(values, nil) / math.Sqrt(sets)
}

// The square of the discrepancy is the mean of k(x, y) a(x) a(y), x and y from the samples'
// distribution, with a the difference between its score and the target's: a = mean for N(mean, 1),
// and x (1/deviation^2 - 1) for N(0, deviation^2). With D = x - y ~ N(0, 2 deviation^2) and
// S = x + y independent of it, x y = (S^2 - D^2)/4.
func TestSteinDiscrepancyOfNormals(t *testing.T) {
	expectation := func(std float64, f func(d float64) float64) float64 {
		normal := distuv.Normal{Sigma: std * math.Sqrt2}
		return quad.Fixed(func(d float64) float64 { return normal.Prob(d) * f(d) / math.Sqrt(1+d*d) }, -10*normal.Sigma, 10*normal.Sigma, 400, nil, 1)
	}
	for _, c := range []struct{ mean, std float64 }{{0, 1}, {0.5, 1}, {-1, 1}, {0, 1.5}, {0, 0.5}} {
		want := c.mean * c.mean * expectation(c.std, func(float64) float64 { return 1 })
		a := 1/(c.std*c.std) - 1
		want += a * a * expectation(c.std, func(d float64) float64 { return (2*c.std*c.std - d*d) / 4 })
		got, standardError := steinOfNormal(t, c.mean, c.std)
		if z := (got - want) / standardError; !(math.Abs(z) < trial.ZLimit) {
			t.Errorf("N(%v, %v^2): U-statistic is %.4g, want %.4g: z = %.1f", c.mean, c.std, got, want, z)
		}
		if want > 0 && !(got > 8*standardError) {
			t.Errorf("N(%v, %v^2): U-statistic is %.4g, with a standard error of %.2g: not told from the standard normal", c.mean, c.std, got, standardError)
		}
	}
}

func TestSteinDiscrepancyRefuses(t *testing.T) {
	two := [][]float64{{1, 2}, {3, 4}}
	for _, c := range []struct {
		kernel          diagnostics.InverseMultiquadric
		samples, scores [][]float64
		want            string
	}{
		{diagnostics.InverseMultiquadric{}, two, two, "Scale must be positive and Exponent between -1 and 0, got 0 and 0"},
		{diagnostics.InverseMultiquadric{Scale: 1, Exponent: -1}, two, two, "got 1 and -1"},
		{diagnostics.InverseMultiquadric{Scale: math.Inf(1), Exponent: -0.5}, two, two, "got +Inf and -0.5"},
		{usualKernel, two[:1], two[:1], "got 1 and 1"},
		{usualKernel, two, two[:1], "got 2 and 1"},
		{usualKernel, [][]float64{{}, {}}, [][]float64{{}, {}}, "at least 1 element"},
		{usualKernel, two, [][]float64{{1, 2}, {3}}, "score 1 must have 2 elements, as sample 0, got 1"},
		{usualKernel, [][]float64{{1, 2}, {3, math.NaN()}}, two, "sample 1 must be finite, got NaN"},
		{usualKernel, two, [][]float64{{math.Inf(1), 2}, {3, 4}}, "score 0 must be finite, got +Inf"},
	} {
		_, _, err := diagnostics.SteinDiscrepancy(c.kernel, c.samples, c.scores)
		if err == nil || !strings.HasPrefix(err.Error(), "diagnostics: ") || !strings.Contains(err.Error(), c.want) {
			t.Errorf("error is %v, want %q", err, c.want)
		}
	}
}

// TestSteinInManyDimensions: of samples of N(0, T) measured by the score of N(0, 1), which are off
// by e = T - 1, a pair has the mean d (2 d T)^-1.5 e^2 and the deviation T sqrt(d/(2 d T)), with
// the customary kernel: e^2/(2 sqrt d) of it, for small e. So a discrepancy shows nothing of
// networks; theta.gU/d has it from a single sample.
func TestSteinInManyDimensions(t *testing.T) {
	const n, d, temperature = 1500, 120, 1.5
	normals := make([]float64, n*d)
	random.Normals(normals, 0, random.Address{Seed: 5})
	samples, scores := make([][]float64, n), make([][]float64, n)
	for i := range samples {
		samples[i], scores[i] = normals[i*d:(i+1)*d], make([]float64, d)
		for j := range samples[i] {
			samples[i][j] *= math.Sqrt(temperature)
			scores[i][j] = -samples[i][j]
		}
	}
	_, got, err := diagnostics.SteinDiscrepancy(usualKernel, samples, scores)
	if err != nil {
		t.Fatal(err)
	}
	want := d * math.Pow(2*d*temperature, -1.5) * (temperature - 1) * (temperature - 1)
	noise := temperature * math.Sqrt(d/(2*d*temperature))
	if z := (got - want) / (noise * math.Sqrt2 / n); !(math.Abs(z) < 4.5) || !(want > 5*noise*math.Sqrt2/n) {
		t.Errorf("the discrepancy is %.4g, want %.4g +- %.2g", got, want, noise*math.Sqrt2/n)
	}
	squares := 0.0
	for i := range n / 2 {
		_, pair, err := diagnostics.SteinDiscrepancy(usualKernel, samples[2*i:2*i+2], scores[2*i:2*i+2])
		if err != nil {
			t.Fatal(err)
		}
		squares += (pair - want) * (pair - want) / (n / 2)
	}
	if !(math.Abs(math.Sqrt(squares)/noise-1) < 0.1) {
		t.Errorf("a pair's deviation is %.4g, want %.4g", math.Sqrt(squares), noise)
	}
	single := 0.0
	for _, x := range samples[0] {
		single += x * x / d
	}
	if !(math.Abs(single-temperature) < 3*temperature*math.Sqrt(2./d)) || !(single > 1.2) {
		t.Errorf("one sample's temperature is %.4g, want %v", single, temperature)
	}
}
