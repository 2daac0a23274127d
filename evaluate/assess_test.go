package evaluate

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

func refused(t *testing.T, name string, err error, message string) {
	t.Helper()
	if err == nil || !strings.Contains(err.Error(), message) || !strings.HasPrefix(err.Error(), "evaluate: ") {
		t.Errorf("%s: got error %v, want one of this package containing %q", name, err, message)
	}
}

// wholeCase has everything a score may need.
func wholeCase(t *testing.T) Case {
	t.Helper()
	random := rand.New(rand.NewPCG(21, 1))
	held, in := world(t, random, 200, 1, 0), world(t, random, 150, 1, 0)
	c, err := Calibrate(held)
	if err != nil {
		t.Fatal(err)
	}
	out := world(t, random, 100, 0.3, 0)
	in.Name, out.Name, out.Labels = "roses", "weeds", nil
	return Case{In: in, Out: out, Calibration: c}
}

// A score is present exactly when what it needs is.
func TestScoresApply(t *testing.T) {
	whole := wholeCase(t)
	unlabelled := *whole.In
	unlabelled.Labels = nil
	few := *whole.Calibration
	few.Examples, few.HeldOut, few.Nonconformity = 18, newHeldOut(whole.In, keptExamples(18)), few.Nonconformity[:18]
	undetected, uncalibrated := unlabelled, *whole.Calibration
	undetected.Strangeness, uncalibrated.Nonconformity = Strangeness{}, nil
	for _, c := range []struct {
		name string
		has  Needs
		Case Case
	}{
		{"nothing", 0, Case{In: &unlabelled}},
		{"labels", NeedsLabels, Case{In: whole.In}},
		{"out of distribution", NeedsOut, Case{In: &unlabelled, Out: whole.Out}},
		{"calibration", NeedsScaling | NeedsCalibration | NeedsDetector, Case{In: &unlabelled, Calibration: whole.Calibration}},
		{"no detector", NeedsScaling | NeedsCalibration, Case{In: &undetected, Calibration: whole.Calibration}},
		{"calibrated without one", NeedsScaling | NeedsCalibration, Case{In: &unlabelled, Calibration: &uncalibrated}},
		{"none for the others", NeedsScaling | NeedsCalibration | NeedsOut, Case{In: &unlabelled, Out: &undetected, Calibration: whole.Calibration}},
		{"too few held out", NeedsLabels | NeedsScaling, Case{In: whole.In, Calibration: &few}},
		{"all", NeedsLabels | NeedsOut | NeedsScaling | NeedsCalibration | NeedsDetector, whole},
	} {
		a, err := Assess(c.Case)
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		for _, s := range Scores() {
			if _, has := a.Values[s.Name]; has != (s.Needs&^c.has == 0) || has != s.Applies(c.Case) {
				t.Errorf("%s: %s is there: %v", c.name, s.Name, has)
			}
		}
		if (a.Detections != nil) != (c.Case.Out != nil) {
			t.Errorf("%s: detections %v", c.name, a.Detections)
		}
	}
	for _, samples := range []int{1, 2} {
		c := Case{In: whole.In, Out: whole.Out}
		c.In.Samples, c.Out.Samples = samples, samples
		want := 0
		for _, s := range OODScores() {
			if s.Applies(c.In) {
				want++
			}
		}
		a, err := Assess(c)
		if err != nil {
			t.Fatal(err)
		}
		if len(a.Detections) != want {
			t.Errorf("%d samples: detections %v, want %d", samples, a.Detections, want)
		}
		if _, has := a.Detections["mutualInformation"]; has != (samples > 1) {
			t.Errorf("%d samples: a detection by mutual information: %v", samples, has)
		}
	}
}

// Every row of the tables is complete, and its name unique.
func TestRowsAreComplete(t *testing.T) {
	var names []string
	for _, s := range Scores() {
		if s.Name == "" || s.Title == "" || !strings.HasPrefix(s.Format, "%.") || !strings.HasSuffix(s.Meaning, ".") || s.Of == nil {
			t.Errorf("score %q is not complete: %+v", s.Name, s)
		}
		names = append(names, s.Name)
		if s.Curve == nil {
			continue
		}
		x, y, err := s.Curve.Of(wholeCase(t))
		if err != nil || len(x) != len(y) || len(x) < 2 || !slices.IsSorted(x) || s.Curve.X == "" || s.Curve.Y == "" {
			t.Errorf("%s: curve of %d x, %d y, axes %q and %q, error %v", s.Name, len(x), len(y), s.Curve.X, s.Curve.Y, err)
		}
	}
	document, err := os.ReadFile("../docs/detection.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range OODScores() {
		if !regexp.MustCompile(`(?m)^\|( .*,)? ` + s.Title + `(,.*)? \|`).Match(document) {
			t.Errorf("docs/detection.md must have %s in its table of scores", s.Title)
		}
		if s.Name == "" || s.Title == "" || !strings.HasSuffix(s.Meaning, ".") || s.Source == "" || s.Of == nil {
			t.Errorf("OOD score %q is not complete: %+v", s.Name, s)
		}
		names = append(names, "by "+s.Name)
	}
	slices.Sort(names)
	if twice := slices.Compact(slices.Clone(names)); len(twice) != len(names) {
		t.Errorf("names %v are not each their own", names)
	}
	if _, err := oodScoreByName(DefaultOODScore); err != nil {
		t.Error(err)
	}
}

// Each value against what the functions of this package say.
func TestAssessAgainstDefinitions(t *testing.T) {
	whole := wholeCase(t)
	a, err := Assess(whole)
	if err != nil {
		t.Fatal(err)
	}
	d, err := Detect(whole.In.Entropy, whole.Out.Entropy)
	if err != nil {
		t.Fatal(err)
	}
	near(t, "AUROC", a.Values["auroc"], d.AUROC, 0)
	near(t, "FPR95", a.Values["fpr95"], d.FPR95, 0)
	near(t, "AUPR out", a.Values["auprOut"], d.AUPROut, 0)
	near(t, "AUPR in", a.Values["auprIn"], d.AUPRIn, 0)
	if a.Detections[DefaultOODScore] != d {
		t.Errorf("detection by entropy %v, want %v", a.Detections[DefaultOODScore], d)
	}
	near(t, "confidence", a.Values["confidence"], mean(whole.In.Confidence), 0)
	near(t, "confidence on weeds", a.Values["confidenceOut"], mean(whole.Out.Confidence), 0)
	correct, err := whole.In.Correct()
	if err != nil {
		t.Fatal(err)
	}
	curve, err := RiskCoverage(whole.In.Entropy, correct)
	if err != nil {
		t.Fatal(err)
	}
	near(t, "AURC", a.Values["aurc"], curve.AURC, 0)
	sets, err := whole.Calibration.PredictionSets(whole.In.Probabilities, whole.In.Classes, Level, SetRule{})
	if err != nil {
		t.Fatal(err)
	}
	size, covered := 0.0, 0.0
	for n, set := range sets {
		size += float64(len(set)) / 150
		if slices.Contains(set, int(whole.In.Labels[n])) {
			covered += 1.0 / 150
		}
	}
	near(t, "size", a.Values["setSize"], size, 1e-12)
	near(t, "coverage", a.Values["setCoverage"], covered, 1e-12)
	threshold, err := whole.Calibration.NonconformityThreshold(Level)
	if err != nil {
		t.Fatal(err)
	}
	accepted := 0.0
	for _, e := range whole.Out.Nonconformity {
		if e <= threshold {
			accepted += 1.0 / 100
		}
	}
	near(t, "inDistribution", a.Values["inDistributionOut"], accepted, 1e-12)

	whole.OODScore = "confidence"
	if a, err = Assess(whole); err != nil {
		t.Fatal(err)
	}
	near(t, "AUROC by confidence", a.Values["auroc"], a.Detections["confidence"].AUROC, 0)
	if a.Values["auroc"] == d.AUROC {
		t.Error("the OOD score makes no difference")
	}
}

func TestAssessmentPrints(t *testing.T) {
	p := predictionsOf(t, []float64{0.75, 0.25, 0.5, 0.5}, []int32{0, 1}, 2)
	p.Name = "roses"
	a, err := Assess(Case{In: p})
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"accuracy 0.5000, NLL 0.4904, Brier 0.3125", ", confidence on roses 0.625"} {
		if !strings.Contains(a.String(), want) {
			t.Errorf("got %q, want %q in it", a.String(), want)
		}
	}
	got, err := json.Marshal(a)
	if err != nil {
		t.Fatal(err)
	}
	const begin = `{"in":{"name":"roses","images":2,"samples":1},"scores":{"accuracy":0.5,"nll":0.4904146265058631,"brier":0.3125,`
	if !strings.HasPrefix(string(got), begin) {
		t.Errorf("got %s, want it to begin with %s", got, begin)
	}
	var back struct {
		Scores Values `json:"scores"`
	}
	if err := json.Unmarshal(got, &back); err != nil {
		t.Fatal(err)
	}
	for name, v := range a.Values {
		near(t, name+" after JSON", back.Scores[name], v, 0)
	}
	if whole, err := Assess(wholeCase(t)); err != nil {
		t.Error(err)
	} else if got, err = json.Marshal(whole); err != nil || !strings.Contains(string(got), `"out":{"name":"weeds"`) ||
		!strings.Contains(string(got), `"oodScore":"entropy"`) || !strings.Contains(string(got), `"confidence":{"auroc":`) {
		t.Errorf("got %s, %v", got, err)
	}
	if _, err := json.Marshal(Values{"beauty": 1}); err == nil {
		t.Error("a name that is no score's is written")
	}
}

func TestAssessRefuses(t *testing.T) {
	whole := wholeCase(t)
	change := func(edit func(c *Case)) Case {
		in, out, calibration := *whole.In, *whole.Out, *whole.Calibration
		c := Case{In: &in, Out: &out, Calibration: &calibration}
		edit(&c)
		return c
	}
	for _, c := range []struct {
		name    string
		edit    func(c *Case)
		message string
	}{
		{"nothing", func(c *Case) { c.In = nil }, "predictions must not be nil"},
		{"no sample", func(c *Case) {
			empty, err := NewPredictive(3, 2)
			if err != nil {
				t.Fatal(err)
			}
			c.In = empty.Predictions("none", nil)
		}, "at least 1 example, got 0"},
		{"labels", func(c *Case) { c.In.Labels = c.In.Labels[1:] }, "must have 149 examples x 5 classes = 745 probabilities, got 750"},
		{"label", func(c *Case) { c.In.Labels = slices.Repeat([]int32{5}, 150) }, "got 5"},
		{"row", func(c *Case) { c.Out.Probabilities = slices.Repeat([]float64{0.5}, 500) },
			"evaluate: Assess: predictions on weeds: example 0: probabilities must sum to 1 within 0.0001, got 2.5"},
		{"uncertainty", func(c *Case) { c.In.Entropy = nil }, "entropy must have one value for each of 150 examples, got 0"},
		{"NaN", func(c *Case) { c.Out.ExpectedEntropy = slices.Repeat([]float64{math.NaN()}, 100) }, "expectedEntropy must be finite, got NaN"},
		{"labels of Out", func(c *Case) { c.Out.Labels = []int32{7} }, "weeds: Labels must be nil or have one label for each of 100 examples, got 1"},
		{"classes", func(c *Case) {
			c.Out = predictionsOf(t, []float64{1, 0}, nil, 2)
		}, "got 5 for roses and 2 for data"},
		{"calibration", func(c *Case) { c.Calibration.Label = nil }, "must have a label for each of 200 examples, got 0: calibrate again"},
		{"samples", func(c *Case) { c.In.Samples = 7 }, "got 1 samples and 5 classes, and 7 and 5"},
		{"OOD score", func(c *Case) { c.OODScore = "smell" }, `got "smell"`},
		{"samples of Out for the OOD score", func(c *Case) { c.OODScore, c.In.Samples, c.Calibration = "mutualInformation", 2, nil },
			"needs at least 2 samples, weeds was predicted with 1"},
		{"detector for the OOD score", func(c *Case) { c.OODScore = "energy" }, "energy needs a run with a detector, roses was predicted without one"},
		{"samples for the OOD score", func(c *Case) { c.OODScore = "mutualInformation" }, "needs at least 2 samples, roses was predicted with 1"},
	} {
		_, err := Assess(change(c.edit))
		refused(t, c.name, err, c.message)
	}
}

// A Predictive's predictions are its average.
func TestPredictionsOfPredictive(t *testing.T) {
	p := mustPredictive(t, 2, 2)
	for _, sample := range [][]float32{{1, 0, 0.5, 0.5}, {0, 1, 0.5, 0.5}} {
		if err := p.Add(sample, 1); err != nil {
			t.Fatal(err)
		}
	}
	got := p.Predictions("roses", []int32{0, 1})
	if got.Name != "roses" || got.Samples != 2 || got.Len() != 2 || got.Classes != 2 || !slices.Equal(got.Probabilities, []float64{0.5, 0.5, 0.5, 0.5}) {
		t.Errorf("got %+v", got)
	}
	near(t, "mutual information", got.MutualInformation[0], math.Ln2, 1e-15)
	near(t, "mutual information", got.MutualInformation[1], 0, 1e-15)
	class, probability := got.Guess(1)
	if class != 0 || probability != 0.5 {
		t.Errorf("guess %d with %v, want 0, the first of equals, with 0.5", class, probability)
	}
}

func TestMeanAndError(t *testing.T) {
	average, standardError := MeanAndError([]float64{1, 2, 3, 6})
	near(t, "mean", average, 3, 0)
	near(t, "error", standardError, math.Sqrt(14.0/3/4), 1e-15)
	if _, one := MeanAndError([]float64{1}); !math.IsNaN(one) {
		t.Errorf("the error of one value is %v, want NaN", one)
	}
	score := Scores()[0]
	runs := []*Assessment{{Values: Values{"accuracy": 0.9}}, {Values: Values{"accuracy": 0.92}}}
	for count, want := range []string{"-", "0.9000", "0.9100 ± 0.0100"} {
		if got := score.Over(runs[:count]); got != want {
			t.Errorf("over %d runs: got %q, want %q", count, got, want)
		}
	}
	if got := score.Over(append(runs, &Assessment{})); got != "-" {
		t.Errorf("where it does not apply to all: got %q, want -", got)
	}
}
