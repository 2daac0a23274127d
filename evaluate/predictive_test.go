package evaluate

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// softmaxRows returns [N K] float32 probabilities, some of them sharp, with exact zeros and ones
// among them.
func softmaxRows(random *rand.Rand, examples, classes int) []float32 {
	rows := make([]float32, examples*classes)
	for n := range examples {
		sharpness := []float64{0.1, 1, 10, 1000}[random.IntN(4)]
		sum := 0.0
		logits := make([]float64, classes)
		for k := range logits {
			logits[k] = sharpness * random.NormFloat64()
		}
		top := slices.Max(logits)
		for k := range logits {
			logits[k] = math.Exp(logits[k] - top)
			sum += logits[k]
		}
		for k := range logits {
			rows[n*classes+k] = float32(logits[k] / sum)
		}
	}
	return rows
}

func near(t *testing.T, what string, got, want, tolerance float64) {
	t.Helper()
	if !(math.Abs(got-want) <= tolerance) {
		t.Errorf("%s: got %v, want %v within %v", what, got, want, tolerance)
	}
}

func mustPredictive(t *testing.T, examples, classes int) *Predictive {
	t.Helper()
	p, err := NewPredictive(examples, classes)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestPredictiveAgainstDefinitions(t *testing.T) {
	for _, shape := range [][3]int{{1, 2, 1}, {31, 10, 5}, {33, 3, 12}, {257, 26, 3}} {
		examples, classes, count := shape[0], shape[1], shape[2]
		random := rand.New(rand.NewPCG(1, uint64(examples)))
		p := mustPredictive(t, examples, classes)
		var samples [][]float32
		var weights []float64
		for range count {
			samples = append(samples, softmaxRows(random, examples, classes))
			weights = append(weights, 0.01+random.Float64())
			if err := p.Add(samples[len(samples)-1], weights[len(weights)-1]); err != nil {
				t.Fatal(err)
			}
		}
		if p.Samples() != count {
			t.Errorf("Samples() = %d, want %d", p.Samples(), count)
		}
		mean, u := p.Mean(), p.Uncertainty()
		for n := range examples {
			total, expected := 0.0, 0.0
			average := make([]float64, classes)
			votes := make([]float64, classes)
			for s, sample := range samples {
				best, entropy := 0, 0.0
				for k := range classes {
					value := float64(sample[n*classes+k])
					average[k] += weights[s] * value
					if value > 0 {
						entropy -= value * math.Log(value)
					}
					if value > float64(sample[n*classes+best]) {
						best = k
					}
				}
				votes[best] += weights[s]
				expected += weights[s] * entropy
				total += weights[s]
			}
			entropy := 0.0
			for k := range average {
				average[k] /= total
				if average[k] > 0 {
					entropy -= average[k] * math.Log(average[k])
				}
				near(t, "mean", mean[n*classes+k], average[k], 1e-6)
			}
			near(t, "confidence", u.Confidence[n], slices.Max(average), 1e-6)
			near(t, "entropy", u.Entropy[n], entropy, 1e-5)
			near(t, "expected entropy", u.ExpectedEntropy[n], expected/total, 1e-5)
			near(t, "mutual information", u.MutualInformation[n], entropy-expected/total, 1e-5)
			near(t, "variation ratio", u.VariationRatio[n], 1-slices.Max(votes)/total, 1e-12)
			sum := 0.0
			for _, probability := range mean[n*classes : (n+1)*classes] {
				sum += probability
			}
			near(t, "sum of a row", sum, 1, 1e-12)
			if u.Confidence[n] < (1-1e-12)/float64(classes) {
				t.Errorf("confidence %v below 1/%d", u.Confidence[n], classes)
			}
		}
	}
}

func TestPredictiveWorkedByHand(t *testing.T) {
	p := mustPredictive(t, 1, 2)
	for _, step := range []struct {
		row    []float32
		weight float64
	}{{[]float32{1, 0}, 3}, {[]float32{0, 1}, 1}} {
		if err := p.Add(step.row, step.weight); err != nil {
			t.Fatal(err)
		}
	}
	u := p.Uncertainty()
	mean := p.Mean()
	entropy := -0.75*math.Log(0.75) - 0.25*math.Log(0.25)
	near(t, "p-bar 0", mean[0], 0.75, 0)
	near(t, "p-bar 1", mean[1], 0.25, 0)
	near(t, "entropy", u.Entropy[0], entropy, 1e-15)
	near(t, "expected entropy", u.ExpectedEntropy[0], 0, 0)
	near(t, "mutual information", u.MutualInformation[0], entropy, 1e-15)
	near(t, "variation ratio", u.VariationRatio[0], 0.25, 0)
}

// One sample, however often it is added and with whatever weights, disagrees with nobody.
func TestPredictiveOfOneSample(t *testing.T) {
	rows := softmaxRows(rand.New(rand.NewPCG(2, 2)), 33, 10)
	for _, weights := range [][]float64{{1}, {1e-320}, {0.1, 0.7, 1e300, 3}} {
		p := mustPredictive(t, 33, 10)
		for _, weight := range weights {
			if err := p.Add(rows, weight); err != nil {
				t.Fatal(err)
			}
		}
		mean, u := p.Mean(), p.Uncertainty()
		for i, want := range rows {
			near(t, "mean", mean[i], float64(want), 1e-6)
		}
		for n := range u.Entropy {
			near(t, "mutual information", u.MutualInformation[n], 0, 1e-14)
			near(t, "variation ratio", u.VariationRatio[n], 0, 1e-15)
			if u.MutualInformation[n] < 0 || u.VariationRatio[n] < 0 {
				t.Errorf("example %d: negative uncertainty", n)
			}
		}
	}
}

func TestPredictiveMeanIsACopy(t *testing.T) {
	p := mustPredictive(t, 1, 2)
	if p.Mean() != nil || p.Uncertainty().Entropy != nil {
		t.Error("an empty average has a mean")
	}
	if err := p.Add([]float32{0.25, 0.75}, 1); err != nil {
		t.Fatal(err)
	}
	p.Mean()[0] = 7
	if got := p.Mean()[0]; got != 0.25 {
		t.Errorf("Mean()[0] = %v after the caller wrote into an earlier copy, want 0.25", got)
	}
}

func TestPredictiveRefuses(t *testing.T) {
	for _, shape := range [][2]int{{0, 10}, {-1, 10}, {1, 1}, {1, 0}} {
		if _, err := NewPredictive(shape[0], shape[1]); err == nil {
			t.Errorf("NewPredictive(%d, %d): no error", shape[0], shape[1])
		}
	}
	nan, inf := float32(math.NaN()), float32(math.Inf(1))
	p := mustPredictive(t, 2, 2)
	if err := p.Add([]float32{1, 0, 0.5, 0.5}, 1); err != nil {
		t.Fatal(err)
	}
	want := p.Mean()
	for _, c := range []struct {
		name    string
		rows    []float32
		weight  float64
		message string
	}{
		{"empty", nil, 1, "probabilities, got 0"},
		{"short", []float32{1, 0}, 1, "probabilities, got 2"},
		{"long", []float32{1, 0, 1, 0, 1, 0}, 1, "probabilities, got 6"},
		{"log-probabilities", []float32{-0.1, -2.3, -0.1, -2.3}, 1, "example 0, class 0: probability must be in [0, 1], got -0.1"},
		{"logits", []float32{1, 0, 1, 2}, 1, "example 1, class 1: probability must be in [0, 1], got 2"},
		{"sum", []float32{1, 0, 0.5, 0.4}, 1, "example 1: probabilities must sum to 1 within 0.0001, got 0.9"},
		{"NaN", []float32{1, 0, nan, 1}, 1, "example 1, class 0: probability must be in [0, 1], got NaN"},
		{"infinite", []float32{1, 0, inf, 1}, 1, "got +Inf"},
		{"zero weight", []float32{1, 0, 1, 0}, 0, "finite, got 0"},
		{"negative weight", []float32{1, 0, 1, 0}, -1, "finite, got -1"},
		{"NaN weight", []float32{1, 0, 1, 0}, math.NaN(), "finite, got NaN"},
		{"infinite weight", []float32{1, 0, 1, 0}, math.Inf(1), "finite, got +Inf"},
	} {
		err := p.Add(c.rows, c.weight)
		if err == nil || !strings.Contains(err.Error(), c.message) {
			t.Errorf("%s: got error %v, want one containing %q", c.name, err, c.message)
		}
	}
	if got := p.Mean(); !slices.Equal(got, want) || p.Samples() != 1 {
		t.Errorf("refused samples moved the mean from %v to %v", want, got)
	}
}
