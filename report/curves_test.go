package report

import (
	"math"
	"slices"
	"strings"
	"testing"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"pgregory.net/rapid"

	"github.com/pollen-ml/pollen/evaluate"
	_ "github.com/pollen-ml/pollen/internal/fixedseed"
)

func near(t *testing.T, what string, got, want, tolerance float64) {
	t.Helper()
	if !(math.Abs(got-want) <= tolerance) {
		t.Errorf("%s: got %v, want %v within %v", what, got, want, tolerance)
	}
}

func refused(t *testing.T, name string, err error, message string) {
	t.Helper()
	if err == nil || !strings.Contains(err.Error(), message) || !strings.HasPrefix(err.Error(), "report: ") {
		t.Errorf("%s: got error %v, want one of this package containing %q", name, err, message)
	}
}

func labels(ticks []plot.Tick) string {
	var b []string
	for _, tick := range ticks {
		if !tick.IsMinor() {
			b = append(b, tick.Label)
		}
	}
	return strings.Join(b, " ")
}

func TestTicks(t *testing.T) {
	for _, c := range []struct {
		low, high float64
		want      string
	}{
		{0, 1, "0.0 0.2 0.4 0.6 0.8 1.0"},
		{-0.013, 0.021, "−0.010 −0.005 0.000 0.005 0.010 0.015 0.020"},
		{0, 30000, "0 5000 10\u00a0000 15\u00a0000 20\u00a0000 25\u00a0000 30\u00a0000"},
		{97.1, 99.3, "97.5 98.0 98.5 99.0"},
		{0, 2e9, "0 5e+08 1e+09 1.5e+09 2e+09"},
		{0, 6e-6, "0 1e−06 2e−06 3e−06 4e−06 5e−06 6e−06"},
	} {
		if got := labels(linearTicks(c.low, c.high)); got != c.want {
			t.Errorf("ticks of [%v, %v]: got %q, want %q", c.low, c.high, got, c.want)
		}
	}
	for _, c := range []struct {
		low, high float64
		want      string
	}{
		{0.02, 3, "0.1 1"},
		{0.2, 3, "0.2 0.5 1 2"},
		{0.9, 1.1, "0.90 0.95 1.00 1.05 1.10"},
		{1e-7, 1, "1e−07 1e−06 1e−05 0.0001 0.001 0.01 0.1 1"},
	} {
		if got := labels(logTicks(math.Log10(c.low)-1e-12, math.Log10(c.high)+1e-12)); got != c.want {
			t.Errorf("logarithmic ticks of [%v, %v]: got %q, want %q", c.low, c.high, got, c.want)
		}
	}
}

// Any axis has a few ticks in order, none beyond its ends, even where float64 has hardly a number
// between these.
func TestTicksProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		low := rapid.Float64Range(-1e6, 1e6).Draw(t, "low")
		width := math.Pow(10, rapid.Float64Range(-18, 12).Draw(t, "width"))
		high := low + width
		if high <= low {
			return
		}
		ticks := linearTicks(low, high)
		if len(ticks) > 10 || width > 1e-9*math.Abs(low) && len(ticks) < 3 {
			t.Fatalf("%d ticks", len(ticks))
		}
		for i, tick := range ticks {
			if tick.Value < low || tick.Value > high || tick.Label == "" || i > 0 && tick.Value < ticks[i-1].Value {
				t.Fatalf("tick %d of %v", i, ticks)
			}
		}
	})
}

func TestThinnedKeepsTheMean(t *testing.T) {
	for _, length := range []int{1, 31, 600, 601, 1201, 10007} {
		c := Curve{X: ramp(length, 1), Y: ramp(length, 0.5)}
		points := thinned(c)
		if len(points) > curvePoints || len(points) == 0 {
			t.Fatalf("%d of %d points, want 1 to %d", len(points), length, curvePoints)
		}
		run := (length + curvePoints - 1) / curvePoints
		for i, p := range points {
			part := c.X[i*run : min((i+1)*run, length)]
			near(t, "X", p.X, floats.Sum(part)/float64(len(part)), 1e-9)
			near(t, "Y", p.Y, p.X/2, 1e-9)
		}
	}
}

func TestLegendWraps(t *testing.T) {
	var l legend
	for _, name := range []string{"SGD", "SGLD average", "pSGLD average", "a method with a name that is far too long", "SGHMC"} {
		l = append(l, legendEntry{name: name})
	}
	wide, wideHeight := l.places(10000)
	narrow, narrowHeight := l.places(250)
	near(t, "height of one row", float64(wideHeight), float64(legendRow+legendSpace), 0)
	rows := 1
	for i := range narrow {
		if wide[i].Y != 0 {
			t.Errorf("entry %d is not in the first row of a wide legend", i)
		}
		if i > 0 && narrow[i].Y < narrow[i-1].Y {
			rows++
			near(t, "begin of a row", float64(narrow[i].X), 0, 0)
		} else if i > 0 && narrow[i].X <= narrow[i-1].X {
			t.Errorf("entry %d at %v lies on entry %d at %v", i, narrow[i], i-1, narrow[i-1])
		}
	}
	near(t, "height of rows", float64(narrowHeight), float64(rows)*float64(legendRow)+float64(legendSpace), 0)
	if rows < 3 {
		t.Errorf("%d rows, want at least 3", rows)
	}
}

func TestCurvesOfOneConstantPoint(t *testing.T) {
	for _, y := range []float64{0, 1, -1e9, 1e-12} {
		f, err := Curves(Axes{X: "step", Y: "loss", Target: y, TargetName: "target"}, []Curve{{"SGD", []float64{5}, []float64{y}}})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.SVG(); err != nil {
			t.Errorf("constant %v: %v", y, err)
		}
	}
}

func TestCurvesRefuses(t *testing.T) {
	one := []float64{1}
	for _, c := range []struct {
		name    string
		axes    Axes
		curves  []Curve
		message string
	}{
		{"nothing", Axes{}, nil, "at least 1 method, got none"},
		{"no points", Axes{}, []Curve{{"a", nil, nil}}, "a: X: must have at least 1 value"},
		{"no name", Axes{}, []Curve{{"", one, one}}, "must have distinct names"},
		{"same name", Axes{}, []Curve{{"a", one, one}, {"a", one, one}}, "distinct names, got \"a\" for method 1"},
		{"length", Axes{}, []Curve{{"a", []float64{1, 2}, one}}, "same length, got 2 and 1"},
		{"NaN in X", Axes{}, []Curve{{"a", []float64{math.NaN()}, one}}, "X: values must be finite, got NaN at 0"},
		{"NaN in Y", Axes{}, []Curve{{"a", one, []float64{math.NaN()}}}, "Y: values must be finite, got NaN at 0"},
		{"infinite Y", Axes{}, []Curve{{"a", one, []float64{math.Inf(1)}}}, "Y: values must be finite, got +Inf at 0"},
		{"order", Axes{}, []Curve{{"a", []float64{2, 1}, []float64{1, 1}}}, "X must not decrease"},
		{"logarithm", Axes{LogY: true}, []Curve{{"a", one, []float64{0}}}, "must be positive on a logarithmic axis"},
		{"target", Axes{Target: math.NaN(), TargetName: "t"}, []Curve{{"a", one, one}}, "logarithmic axis, got NaN"},
		{"target of a logarithm", Axes{LogY: true, TargetName: "t"}, []Curve{{"a", one, one}}, "logarithmic axis, got 0"},
	} {
		_, err := Curves(c.axes, c.curves)
		refused(t, c.name, err, c.message)
	}
	_, err := riskCoverage(nil)
	refused(t, "no selection", err, "at least 1 method, got none")
	_, err = riskCoverage([]selection{{"a", "", evaluate.SelectiveRisk{}}})
	refused(t, "empty selection", err, "at least 1 value, got none")
}

func TestRelativeDensity(t *testing.T) {
	// The two halves are mirror images, so the estimate is symmetric, with its top in the middle.
	values := []float64{-2, -1, -0.5, -0.1, 0.1, 0.5, 1, 2}
	before := slices.Clone(values)
	curve := relativeDensity(values, 0)
	bandwidth := (curve[len(curve)-1].X - curve[0].X - 4) / 6
	// Silverman's rule by hand: the standard deviation is 1.2325, the quartiles -1 and .5, their
	// distance/1.34 1.1194.
	near(t, "bandwidth", bandwidth, 0.9*1.5/1.34*math.Pow(8, -0.2), 1e-12)
	density := func(x float64) float64 {
		sum := 0.0
		for _, v := range values {
			sum += math.Exp(-(x - v) * (x - v) / (2 * bandwidth * bandwidth))
		}
		return sum
	}
	for i, p := range curve {
		near(t, "symmetry", p.Y, curve[len(curve)-1-i].Y, 1e-12)
		near(t, "shape", p.Y/curve[100].Y, density(p.X)/density(curve[100].X), 1e-12)
	}
	near(t, "maximum", slices.MaxFunc(curve, func(a, b plotter.XY) int { return int(math.Copysign(1, a.Y-b.Y)) }).Y, 1, 0)
	if !slices.Equal(values, before) {
		t.Error("relativeDensity reordered its input")
	}
	still := relativeDensity([]float64{3, 3, 3}, 0.01)
	near(t, "left end of a spike", still[0].X, 2.97, 1e-12)
	near(t, "right end of a spike", still[len(still)-1].X, 3.03, 1e-12)
}

func TestWindowStarts(t *testing.T) {
	for _, c := range []struct {
		length, window int
		want           []int
	}{
		{10, 10, []int{0}},
		{11, 10, []int{0, 1}},
		{70, 10, []int{0, 10, 20, 30, 40, 50, 60}},
		{6000, 1000, []int{0, 833, 1666, 2500, 3333, 4166, 5000}},
	} {
		if got := windowStarts(c.length, c.window); !slices.Equal(got, c.want) {
			t.Errorf("windows of %d in %d: got %v, want %v", c.window, c.length, got, c.want)
		}
	}
}

func TestWeightDensityRefuses(t *testing.T) {
	good := ramp(shortestTrace, 1)
	for _, c := range []struct {
		name    string
		traces  []trace
		message string
	}{
		{"nothing", nil, "at least 1 method, got none"},
		{"at least 1 value, got none", []trace{{Method: "a", Values: nil}}, "at least 1 value, got none"},
		{"no name", []trace{{Method: "", Values: good}}, "must have distinct names"},
		{"NaN", []trace{{Method: "a", Values: []float64{1, math.NaN()}}}, "a: values must be finite, got NaN at 1"},
		{"infinite", []trace{{Method: "a", Values: []float64{1, math.Inf(-1)}}}, "a: values must be finite, got -Inf at 1"},
		{"short", []trace{{Method: "a", Values: good}, {Method: "b", Values: good[1:]}}, "b must have at least 12 values, got 11"},
	} {
		_, err := weightDensity("weight", c.traces, nil)
		refused(t, c.name, err, c.message)
	}
}
