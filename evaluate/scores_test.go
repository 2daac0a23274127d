package evaluate

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"
)

// labelled returns float64 probabilities [N K] and labels drawn from them, so that they are about
// calibrated.
func labelled(random *rand.Rand, examples, classes int) ([]float64, []int32) {
	rows := softmaxRows(random, examples, classes)
	probabilities := make([]float64, len(rows))
	labels := make([]int32, examples)
	for i, p := range rows {
		probabilities[i] = float64(p)
	}
	for n := range labels {
		u := random.Float64()
		for k := range classes {
			u -= probabilities[n*classes+k]
			if u < 0 {
				labels[n] = int32(k)
				break
			}
		}
	}
	return probabilities, labels
}

func predictionsOf(t *testing.T, probabilities []float64, labels []int32, classes int) *Predictions {
	t.Helper()
	p, err := NewPredictions("data", probabilities, labels, classes)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// scored returns the scores of labelled predictions.
func scored(t *testing.T, p *Predictions) Values {
	t.Helper()
	a, err := Assess(Case{In: p})
	if err != nil {
		t.Fatal(err)
	}
	return a.Values
}

func TestScoreWorkedByHand(t *testing.T) {
	probabilities := []float64{
		0.7, 0.2, 0.1, // right
		0.5, 0.5, 0, // the first of equals: wrong for label 1
		0, 0, 1, // right, certain
		1, 0, 0, // wrong, certain: p = 0 for label 2
	}
	p := predictionsOf(t, probabilities, []int32{0, 1, 2, 2}, 3)
	s := scored(t, p)
	near(t, "accuracy", s["accuracy"], 0.5, 0)
	near(t, "mean confidence", s["confidence"], 0.8, 1e-15)
	near(t, "NLL", s["nll"], (-math.Log(0.7)-math.Log(0.5)-math.Log(1)+149*math.Ln2)/4, 1e-12)
	near(t, "Brier", s["brier"], (0.09+0.04+0.01+0.25+0.25+0+2)/4, 1e-12)
	// Equal width: {0.7}, {0.5} and {1, 1}, the last with accuracy 1/2.
	near(t, "ECE", s["ece"], (0.3+0.5+2*0.5)/4, 1e-12)
	// Equal mass: four bins of one; both certain examples count with their mean correctness 1/2.
	near(t, "ECE of equal mass", s["eceEqualMass"], (0.3+0.5+0.5+0.5)/4, 1e-12)
	correct, err := p.Correct()
	if err != nil {
		t.Fatal(err)
	}
	for n, want := range []bool{true, false, true, false} {
		if correct[n] != want {
			t.Errorf("example %d: correct %v, want %v", n, correct[n], want)
		}
	}
}

func TestScoreOfTheUniformDistribution(t *testing.T) {
	const examples, classes = 100, 10
	probabilities := make([]float64, examples*classes)
	labels := make([]int32, examples)
	for i := range probabilities {
		probabilities[i] = 1.0 / classes
	}
	for n := range labels {
		labels[n] = int32(n % classes)
	}
	s := scored(t, predictionsOf(t, probabilities, labels, classes))
	near(t, "accuracy", s["accuracy"], 0.1, 1e-15)
	near(t, "NLL", s["nll"], math.Log(10), 1e-12)
	near(t, "Brier", s["brier"], 0.9, 1e-12)
	near(t, "ECE", s["ece"], 0, 1e-12)
	near(t, "ECE of equal mass", s["eceEqualMass"], 0, 1e-12)
}

// The bins against a loop over all examples for each bin.
func TestBinsAgainstDefinitions(t *testing.T) {
	for _, examples := range []int{1, 14, 31, 257} {
		const classes = 10
		probabilities, labels := labelled(rand.New(rand.NewPCG(3, uint64(examples))), examples, classes)
		bins, err := EqualWidthBins(predictionsOf(t, probabilities, labels, classes))
		if err != nil {
			t.Fatal(err)
		}
		total := 0
		for b, bin := range bins {
			lower, upper := float64(b)/15, float64(b+1)/15
			count, confidence, accuracy := 0, 0.0, 0.0
			for n, label := range labels {
				best, top := largest(probabilities[n*classes : (n+1)*classes])
				if top > lower && top <= upper {
					count++
					confidence += top
					if best == int(label) {
						accuracy++
					}
				}
			}
			if bin.Count != count || bin.Lower != lower || bin.Upper != upper {
				t.Errorf("bin %d: got %+v, want %d examples in (%v, %v]", b, bin, count, lower, upper)
			}
			near(t, "confidence", bin.Confidence, confidence/math.Max(1, float64(count)), 1e-12)
			near(t, "accuracy", bin.Accuracy, accuracy/math.Max(1, float64(count)), 1e-12)
			total += count
		}
		if total != examples {
			t.Errorf("%d examples in all bins, want %d", total, examples)
		}
		total = 0
		previous := 0.0
		for b, bin := range equalMass(predictionsOf(t, probabilities, labels, classes).outcomes()) {
			if bin.Count < examples/15 || bin.Count > examples/15+1 {
				t.Errorf("equal mass bin %d holds %d of %d", b, bin.Count, examples)
			}
			if bin.Count > 0 && (bin.Lower < previous || bin.Confidence < bin.Lower-1e-12 || bin.Confidence > bin.Upper+1e-12) {
				t.Errorf("equal mass bin %d: %+v after upper edge %v", b, bin, previous)
			}
			previous = math.Max(previous, bin.Upper)
			total += bin.Count
		}
		if total != examples {
			t.Errorf("%d examples in all bins of equal mass, want %d", total, examples)
		}
	}
}

// A confidence on the edge of two bins belongs to the lower one; 1 to the last, and a rounding
// above 1 too.
func TestBinsOnTheirEdges(t *testing.T) {
	for confidence, want := range map[float64]int{0.6: 8, 0.8: 11, math.Nextafter(0.8, 1): 12, 1: 14, 1 + 5e-5: 14} {
		bins, err := EqualWidthBins(predictionsOf(t, []float64{confidence, math.Max(0, 1-confidence)}, []int32{0}, 2))
		if err != nil {
			t.Fatal(err)
		}
		if bins[want].Count != 1 {
			t.Errorf("confidence %v: got %+v, want it in bin %d", confidence, bins, want)
		}
	}
}

// Calibrated predictions have a small calibration error, overconfident ones the size of their
// overconfidence.
func TestCalibrationErrorSeesOverconfidence(t *testing.T) {
	random := rand.New(rand.NewPCG(4, 4))
	const examples = 20000
	probabilities := make([]float64, 2*examples)
	calibrated, overconfident := make([]int32, examples), make([]int32, examples)
	for n := range examples {
		p := 0.7 + 0.3*random.Float64()
		probabilities[2*n], probabilities[2*n+1] = p, 1-p
		if random.Float64() > p {
			calibrated[n] = 1
		}
		if random.Float64() > p-0.2 {
			overconfident[n] = 1
		}
	}
	good := scored(t, predictionsOf(t, probabilities, calibrated, 2))
	bad := scored(t, predictionsOf(t, probabilities, overconfident, 2))
	// The expected |error| of one of about 5 (15) bins of 4000 (1333) examples is below
	// 0.8*0.36/sqrt(1333) = 0.008.
	for _, e := range []float64{good["ece"], good["eceEqualMass"]} {
		near(t, "calibrated", e, 0, 0.012)
	}
	for _, e := range []float64{bad["ece"], bad["eceEqualMass"]} {
		near(t, "overconfident by 0.2", e, 0.2, 0.012)
	}
}

// Ties in confidence must not make any score depend on the order of the examples.
func TestScoreIgnoresTheOrder(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 5))
	const examples, classes = 257, 3
	rows := [][]float64{{1, 0, 0}, {0, 0, 1}, {0.5, 0.25, 0.25}, {0.25, 0.5, 0.25}}
	choice, labels := make([]int, examples), make([]int32, examples)
	for n := range choice {
		choice[n], labels[n] = random.IntN(len(rows)), int32(random.IntN(classes))
	}
	score := func() Values {
		var probabilities []float64
		for _, c := range choice {
			probabilities = append(probabilities, rows[c]...)
		}
		return scored(t, predictionsOf(t, probabilities, labels, classes))
	}
	want := score()
	for range 5 {
		random.Shuffle(examples, func(i, j int) {
			choice[i], choice[j] = choice[j], choice[i]
			labels[i], labels[j] = labels[j], labels[i]
		})
		got := score()
		near(t, "ECE", got["ece"], want["ece"], 1e-12)
		near(t, "ECE of equal mass", got["eceEqualMass"], want["eceEqualMass"], 1e-12)
		near(t, "NLL", got["nll"], want["nll"], 1e-11)
		near(t, "Brier", got["brier"], want["brier"], 1e-12)
	}
}

func TestScoreRefuses(t *testing.T) {
	for _, c := range []struct {
		name          string
		probabilities []float64
		labels        []int32
		classes       int
		message       string
	}{
		{"empty", nil, []int32{}, 2, "at least 1 example, got 0"},
		{"no labels", []float64{1, 0}, nil, 2, "must have labels"},
		{"no probabilities", nil, []int32{0}, 2, "probabilities, got 0"},
		{"one class", []float64{1}, []int32{0}, 1, "at least 2 classes, got 1"},
		{"length", []float64{1, 0, 1}, []int32{0}, 2, "probabilities, got 3"},
		{"label", []float64{1, 0, 1, 0}, []int32{0, 2}, 2, "example 1: label must be 0 or more and below 2, got 2"},
		{"NaN", []float64{1, math.NaN()}, []int32{0}, 2, "class 1: probability must be in [0, 1], got NaN"},
		{"sum", []float64{0.2, 0.2}, []int32{0}, 2, "sum to 1 within 0.0001, got 0.4"},
		{"negative", []float64{1.5, -0.5}, []int32{0}, 2, "got 1.5"},
	} {
		_, err := NewPredictions("a", c.probabilities, c.labels, c.classes)
		p := &Predictions{Name: "a", Probabilities: c.probabilities, Labels: c.labels, Classes: c.classes}
		_, errCorrect := p.Correct()
		_, errWidth := EqualWidthBins(p)
		errs := map[string]error{"Correct": errCorrect, "EqualWidthBins": errWidth}
		if c.name != "no labels" {
			errs["NewPredictions"] = err
		}
		for name, err := range errs {
			if err == nil || !strings.Contains(err.Error(), c.message) || !strings.HasPrefix(err.Error(), "evaluate: "+name+": ") {
				t.Errorf("%s: %s: got error %v, want one containing %q", name, c.name, err, c.message)
			}
		}
	}
}
