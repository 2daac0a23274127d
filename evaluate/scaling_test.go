package evaluate

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// misjudged draws n labels from probabilities over 4 classes, and predicts these probabilities
// raised to 1/exponent and normalized: with the given exponent they are right again.
func misjudged(t *testing.T, random *rand.Rand, n int, exponent float64) *Predictions {
	t.Helper()
	const classes = 4
	probabilities, labels := make([]float64, n*classes), make([]int32, n)
	for i := range n {
		row, right, sum := probabilities[i*classes:(i+1)*classes], make([]float64, classes), 0.0
		for k := range row {
			right[k] = math.Exp(2 * random.NormFloat64())
			sum += right[k]
		}
		u := random.Float64() * sum
		for u > right[labels[i]] {
			u -= right[labels[i]]
			labels[i]++
		}
		sum = 0
		for k, v := range right {
			row[k] = math.Pow(v, 1/exponent)
			sum += row[k]
		}
		for k := range row {
			row[k] /= sum
		}
	}
	p, err := NewPredictions("roses", probabilities, labels, classes)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// Probabilities that are too cautious or too certain are right after scaling: the exponent is found
// within its standard error, of about 1/sqrt(n), and the calibration error of other examples falls
// to what chance gives.
func TestExponentIsFound(t *testing.T) {
	for _, exponent := range []float64{0.4, 1, 1.3, 3} {
		random := rand.New(rand.NewPCG(7, uint64(10*exponent)))
		c, err := Calibrate(misjudged(t, random, 20_000, exponent))
		if err != nil {
			t.Fatal(err)
		}
		if math.Abs(c.Exponent/exponent-1) > 0.04 {
			t.Errorf("the exponent is %.3f, want %v", c.Exponent, exponent)
		}
		a, err := Assess(Case{In: misjudged(t, random, 20_000, exponent), Calibration: c})
		if err != nil {
			t.Fatal(err)
		}
		if exponent != 1 && (a.Values["ece"] < 0.05 || a.Values["nllScaled"] > a.Values["nll"]-0.01) {
			t.Errorf("exponent %v: %v", exponent, a)
		}
		if a.Values["eceScaled"] > 0.015 {
			t.Errorf("exponent %v: the calibration error of scaled probabilities is %v", exponent, a.Values["eceScaled"])
		}
	}
}

// The exponent is where the derivative of the penalized likelihood, by finite differences of its
// formula, is 0.
func TestExponentIsAMinimum(t *testing.T) {
	p := misjudged(t, rand.New(rand.NewPCG(1, 2)), 60, 2)
	objective := func(exponent float64) float64 {
		sum := scalingPrior * (exponent - math.Log(exponent))
		for n, label := range p.Labels {
			total := 0.0
			for _, v := range p.row(n) {
				total += math.Pow(v, exponent)
			}
			sum -= math.Log(math.Pow(p.row(n)[label], exponent) / total)
		}
		return sum
	}
	found := fitExponent(p, keptExamples(p.Len()))
	for _, other := range []float64{0.999, 1.001} {
		if objective(other*found) < objective(found) {
			t.Errorf("the objective is lower at %v times the exponent, %v", other, found)
		}
	}
}

// Without much evidence the exponent stays near 1, and it is bounded whatever the examples are.
func TestExponentOfFewExamples(t *testing.T) {
	for _, c := range []struct {
		name      string
		row       []float64
		n         int
		low, high float64
	}{
		{"one correct", []float64{0.7, 0.3}, 1, 1, 1.1},
		{"one wrong", []float64{0.3, 0.7}, 1, 0.8, 1},
		{"many correct", []float64{0.7, 0.3}, 100_000, 10, maxExponent},
		{"many impossible", []float64{0, 1}, 1000, 1 / maxExponent, 0.1},
		{"uniform", []float64{0.5, 0.5}, 100, 0.9999, 1.0001},
	} {
		p, err := NewPredictions("roses", slices.Repeat(c.row, c.n), make([]int32, c.n), 2)
		if err != nil {
			t.Fatal(err)
		}
		if got := fitExponent(p, keptExamples(c.n)); !(got >= c.low && got <= c.high) {
			t.Errorf("%s: the exponent is %v, want %v to %v", c.name, got, c.low, c.high)
		}
	}
}

// A group of equal examples counts as one.
func TestExponentOfGroups(t *testing.T) {
	single := misjudged(t, rand.New(rand.NewPCG(3, 4)), 30, 2)
	want := fitExponent(single, keptExamples(30))
	many := &Predictions{Classes: single.Classes}
	for n := range 300 {
		many.Probabilities = append(many.Probabilities, single.row(n%30)...)
		many.Labels = append(many.Labels, single.Labels[n%30])
		many.Groups = append(many.Groups, fmt.Sprint(n%30))
	}
	if got := fitExponent(many, keptExamples(300)); math.Abs(got-want) > 1e-9 {
		t.Errorf("the exponent is %v, want %v", got, want)
	}
	many.Groups = nil
	if got := fitExponent(many, keptExamples(300)); math.Abs(got-want) < 1e-3 {
		t.Errorf("without groups the exponent is the same, %v: each example should count", got)
	}
}

// More probabilities than are used for fitting give nearly the same exponent.
func TestExponentOfMany(t *testing.T) {
	p := misjudged(t, rand.New(rand.NewPCG(5, 6)), 300_000, 1.5)
	if got := fitExponent(p, indices(p.Len())); math.Abs(got-1.5) > 0.02 {
		t.Errorf("the exponent is %v, want 1.5", got)
	}
}

// Scaling keeps the order of the classes, zeros, and sums of 1, and changes nothing else than the
// confidence.
func TestScaled(t *testing.T) {
	p, err := NewPredictions("roses", []float64{0.5, 0.3, 0.2, 0, 1, 0, 1. / 3, 1. / 3, 1. / 3}, []int32{0, 1, 2}, 3)
	if err != nil {
		t.Fatal(err)
	}
	c, err := Calibrate(p)
	if err != nil {
		t.Fatal(err)
	}
	c.Exponent = 2
	s, err := c.Scaled(p)
	if err != nil {
		t.Fatal(err)
	}
	want := []float64{25. / 38, 9. / 38, 4. / 38, 0, 1, 0, 1. / 3, 1. / 3, 1. / 3}
	for i, v := range s.Probabilities {
		if math.Abs(v-want[i]) > 1e-15 {
			t.Errorf("probability %d is %v, want %v", i, v, want[i])
		}
	}
	if !slices.Equal(s.Confidence, []float64{s.Probabilities[0], 1, s.Probabilities[6]}) || !slices.Equal(s.Entropy, p.Entropy) || p.Probabilities[0] != 0.5 {
		t.Errorf("confidence %v, entropy %v of %v, and %v of the original", s.Confidence, s.Entropy, p.Entropy, p.Probabilities)
	}
	for _, exponent := range []float64{0, -1, 17, math.NaN(), math.Inf(1)} {
		c.Exponent = exponent
		_, err := c.Scaled(p)
		refused(t, fmt.Sprint(exponent), err, "exponent must be from 0.0625 to 16")
	}
	c.Exponent, c.Samples = 1, 2
	_, err = c.Scaled(p)
	refused(t, "samples", err, "same samples and classes")
	_, err = c.Scaled(nil)
	refused(t, "nil", err, "must not be nil")
}

// Scaling leaves the decisions of a calibration as they are: thresholds
// are computed from probabilities before scaling.
func TestDecisionsAreNotScaled(t *testing.T) {
	c, err := Calibrate(misjudged(t, rand.New(rand.NewPCG(8, 9)), 500, 2))
	if err != nil {
		t.Fatal(err)
	}
	other := *c
	other.Exponent = 1
	in := misjudged(t, rand.New(rand.NewPCG(9, 9)), 500, 2)
	a, err := Assess(Case{In: in, Calibration: c})
	if err != nil {
		t.Fatal(err)
	}
	b, err := Assess(Case{In: in, Calibration: &other})
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range Scores() {
		if changed := a.Values[s.Name] != b.Values[s.Name]; changed != (s.Needs&NeedsScaling != 0) {
			t.Errorf("%s: %v with an exponent of %v, %v with 1", s.Name, a.Values[s.Name], c.Exponent, b.Values[s.Name])
		}
	}
}
