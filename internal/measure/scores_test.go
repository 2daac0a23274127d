package measure

import (
	"math"
	"testing"
)

// Weights of classes weight the loss and leave the accuracy as it is.
func TestScores(t *testing.T) {
	probabilities, labels := []float64{0.5, 0.5, 0.25, 0.75, 0.75, 0.25}, []int32{0, 1, 1}
	for _, c := range []struct{ weights, losses []float64 }{
		{nil, []float64{1. / 3, 1. / 3, 1. / 3}},
		{[]float64{3, 1}, []float64{3. / 5, 1. / 5, 1. / 5}},
	} {
		want := -c.losses[0]*math.Log(0.5) - c.losses[1]*math.Log(0.75) - c.losses[2]*math.Log(0.25)
		loss, accuracy := Scores(probabilities, labels, c.weights)
		if math.Abs(loss-want) > 1e-12 || math.Abs(accuracy-2./3) > 1e-12 {
			t.Errorf("weights %v: loss %v and accuracy %v, want %v and 2/3", c.weights, loss, accuracy, want)
		}
	}
}
