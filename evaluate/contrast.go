package evaluate

import (
	"math"
	"slices"

	"github.com/pkg/errors"
)

// Contrast compares predictions with a reference on the same labelled examples.
type Contrast struct {
	Accuracy, NLL                   float64
	ReferenceAccuracy, ReferenceNLL float64
	// Worse is true if the predictions have a lower accuracy, or a higher NLL at no higher
	// accuracy, by more than a small amount and by three standard errors of the paired difference.
	Worse bool
}

// The differences above which predictions are worse.
const (
	worseAccuracy = 0.01
	worseNLL      = 0.05 // nats
	worseErrors   = 3    // standard errors
)

// ContrastWith compares p with a reference, which must have predictions of the same labelled
// examples. A label's probability of 0 counts as 1e-12.
func (p *Predictions) ContrastWith(reference *Predictions) (Contrast, error) {
	var c Contrast
	for _, q := range []*Predictions{p, reference} {
		if err := q.check("ContrastWith"); err != nil {
			return c, err
		}
		if err := q.checkLabels("ContrastWith"); err != nil {
			return c, err
		}
	}
	if p.Len() != reference.Len() || p.Classes != reference.Classes {
		return c, errors.Errorf("evaluate: ContrastWith: must have the reference's %[3]d examples and %[4]d classes, got %[1]d and %[2]d",
			p.Len(), p.Classes, reference.Len(), reference.Classes)
	}
	if !slices.Equal(p.Labels, reference.Labels) {
		return c, errors.New("evaluate: ContrastWith: must have the reference's labels, got others")
	}
	right, err := p.Correct()
	if err != nil {
		return c, err
	}
	others, err := reference.Correct()
	if err != nil {
		return c, err
	}
	var mistakes, losses difference
	for n, label := range p.Labels {
		loss, other := -math.Log(max(p.row(n)[label], 1e-12)), -math.Log(max(reference.row(n)[label], 1e-12))
		mistakes.add(one(!right[n]) - one(!others[n]))
		losses.add(loss - other)
		c.Accuracy += one(right[n])
		c.ReferenceAccuracy += one(others[n])
		c.NLL += loss
		c.ReferenceNLL += other
	}
	for _, sum := range []*float64{&c.Accuracy, &c.ReferenceAccuracy, &c.NLL, &c.ReferenceNLL} {
		*sum /= float64(p.Len())
	}
	c.Worse = mistakes.above(worseAccuracy) || losses.above(worseNLL) && c.Accuracy <= c.ReferenceAccuracy
	return c, nil
}

func one(condition bool) float64 {
	if condition {
		return 1
	}
	return 0
}

// difference sums paired differences.
type difference struct{ n, sum, squares float64 }

func (d *difference) add(x float64) {
	d.n++
	d.sum += x
	d.squares += x * x
}

// above reports whether the mean exceeds threshold, and also exceeds 0 by worseErrors standard
// errors. A single difference has no standard error, and is not enough.
func (d *difference) above(threshold float64) bool {
	if d.n < 2 {
		return false
	}
	mean := d.sum / d.n
	variance := max(0, d.squares/d.n-mean*mean) / (d.n - 1)
	return mean > threshold && mean > worseErrors*math.Sqrt(variance)
}
