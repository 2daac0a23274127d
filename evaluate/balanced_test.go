package evaluate

import (
	"math/rand/v2"
	"slices"
	"testing"
)

func TestBalancedAccuracyWorkedByHand(t *testing.T) {
	c := Case{In: predictionsOf(t, []float64{
		1, 0, 0, 0, // right, certain
		0.7, 0.1, 0.1, 0.1, // right
		0, 1, 0, 0, // wrong, certain: p = 0 for label 0
		0.5, 0.5, 0, 0, // the first of equals: right
		0, 0.5, 0.5, 0, // the first of equals: wrong for label 2
		0, 0, 0.4, 0.6, // wrong: class 3 is an answer, but no label
	}, []int32{0, 0, 0, 0, 2, 1}, 4)}
	// The classes 0, 1 and 2 occur, with recalls of 3/4, 0 and 0.
	got, err := balancedScore.Of(c)
	if err != nil {
		t.Fatal(err)
	}
	near(t, "balanced accuracy", got, 0.25, 1e-15)
	x, y, err := balancedScore.Curve.Of(c)
	if err != nil || !slices.Equal(x, []float64{1. / 3, 2. / 3, 1}) || !slices.Equal(y, []float64{0, 0, 0.75}) {
		t.Errorf("got the curve %v, %v, %v, want a point for each of three classes", x, y, err)
	}
	c.In.Labels = nil
	if _, err := balancedScore.Of(c); err == nil || balancedScore.Applies(c) {
		t.Errorf("without labels: got error %v, applies %v", err, balancedScore.Applies(c))
	}
	if _, _, err := balancedScore.Curve.Of(c); err == nil {
		t.Error("without labels: there is a curve")
	}
}

// Against the definition, and against the accuracy where all classes are equally frequent.
func TestBalancedAccuracyAgainstDefinition(t *testing.T) {
	random := rand.New(rand.NewPCG(7, 7))
	for _, classes := range []int{2, 10, 43} {
		examples := 11 * classes
		probabilities, labels := labelled(random, examples, classes)
		balanced := make([]int32, examples)
		for n := range balanced {
			balanced[n] = int32(n % classes)
		}
		p := predictionsOf(t, probabilities, labels, classes)
		want, occur := 0.0, 0
		for k := range classes {
			count, right := 0, 0
			for n, label := range labels {
				if int(label) != k {
					continue
				}
				count++
				if guess, _ := p.Guess(n); guess == k {
					right++
				}
			}
			if count > 0 {
				want += float64(right) / float64(count)
				occur++
			}
		}
		near(t, "balanced accuracy", scored(t, p)["balancedAccuracy"], want/float64(occur), 1e-12)
		s := scored(t, predictionsOf(t, probabilities, balanced, classes))
		near(t, "with classes of one size", s["balancedAccuracy"], s["accuracy"], 1e-12)
		x, y, err := balancedScore.Curve.Of(Case{In: p})
		if err != nil || len(x) != occur || x[occur-1] != 1 || !slices.IsSorted(x) || !slices.IsSorted(y) {
			t.Errorf("got the curve %v, %v, %v of %d classes", x, y, err, occur)
			continue
		}
		near(t, "the mean of the curve", mean(y), want/float64(occur), 1e-12)
	}
}
