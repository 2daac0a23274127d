package evaluate

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/pkg/errors"
)

// calibrationBins is the number of bins of calibration errors and reliability diagrams.
const calibrationBins = 15

// Bin is one bin of a reliability diagram: the number of examples with Lower < confidence <= Upper,
// and their mean confidence and accuracy, both 0 for an empty bin. In bins of equal mass, Lower and
// Upper are the smallest and the largest confidence in the bin, both included.
type Bin struct {
	Lower, Upper         float64
	Count                int
	Confidence, Accuracy float64
}

// EqualWidthBins groups examples into 15 bins of equal width over (0, 1]. It returns an error if
// labels are missing or out of range.
func EqualWidthBins(p *Predictions) ([]Bin, error) {
	if err := p.checkLabels("EqualWidthBins"); err != nil {
		return nil, err
	}
	return equalWidth(p.outcomes()), nil
}

// CalibrationErrorByChance returns the ECE that perfectly calibrated probabilities with the
// confidences of p would have by chance, since the examples are few: the mean and the 95th
// percentile over simulated labels. It returns an error for no predictions.
func CalibrationErrorByChance(p *Predictions) (mean, high float64, err error) {
	const name = "CalibrationErrorByChance"
	if p == nil {
		return 0, 0, errors.Errorf("evaluate: %s: predictions must not be nil", name)
	}
	if err := checkRows(name+": predictions on "+p.Name, p.Probabilities, p.Len(), p.Classes); err != nil {
		return 0, 0, err
	}
	confidences, members, bins := make([]float64, p.Len()), make([]uint8, p.Len()), widthBins()
	for n := range confidences {
		_, confidences[n] = largest(p.row(n))
		members[n] = uint8(binOf(bins, confidences[n]))
		bins[members[n]].add(outcome{confidence: confidences[n]})
	}
	r, each := rand.New(rand.NewPCG(1, 2)), make([]float64, simulations(p.Len()))
	for i := range each {
		var right [calibrationBins]int
		for n, confidence := range confidences {
			if r.Float64() < confidence {
				right[members[n]]++
			}
		}
		for b, count := range right {
			each[i] += math.Abs(float64(count)-bins[b].Confidence) / float64(p.Len())
		}
		mean += each[i] / float64(len(each))
	}
	slices.Sort(each)
	return mean, each[len(each)*95/100], nil
}

// simulations returns the number of simulations of CalibrationErrorByChance. It is smaller for many
// examples, to limit the time: the error by chance is then far below errors that matter.
func simulations(examples int) int { return min(400, max(50, 4_000_000/examples)) }

var (
	eceScore = Score{
		Name: "ece", Title: "ECE", Format: "%.4f", Needs: NeedsLabels,
		Meaning: "The expected calibration error: the mean absolute difference of accuracy and confidence over " +
			"15 bins of equal width (Guo et al. 2017). Lower is better.",
		Of: func(c Case) (float64, error) { return calibrationError(equalWidth(c.In.outcomes())), nil },
	}
	eceEqualMassScore = Score{
		Name: "eceEqualMass", Title: "ECE, equal mass", Format: "%.4f", Needs: NeedsLabels,
		Meaning: "The expected calibration error over 15 bins of equal count.",
		Of:      func(c Case) (float64, error) { return calibrationError(equalMass(c.In.outcomes())), nil },
	}
)

// outcome is the input of calibration errors for one example: its confidence, and an accuracy of 1
// or 0.
type outcome struct{ confidence, accuracy float64 }

// outcomes requires valid labels.
func (p *Predictions) outcomes() []outcome {
	all := make([]outcome, len(p.Labels))
	for n, label := range p.Labels {
		best, confidence := largest(p.row(n))
		all[n].confidence = confidence
		if best == int(label) {
			all[n].accuracy = 1
		}
	}
	return all
}

func equalWidth(outcomes []outcome) []Bin {
	bins := widthBins()
	for _, p := range outcomes {
		bins[binOf(bins, p.confidence)].add(p)
	}
	return averaged(bins)
}

// widthBins returns empty bins of equal width.
func widthBins() []Bin {
	bins := make([]Bin, calibrationBins)
	for b := range bins {
		bins[b].Lower = float64(b) / calibrationBins
		bins[b].Upper = float64(b+1) / calibrationBins
	}
	return bins
}

// binOf returns the number of the bin for a confidence.
func binOf(bins []Bin, confidence float64) int {
	b, _ := slices.BinarySearchFunc(bins, confidence, func(bin Bin, c float64) int { return cmp.Compare(bin.Upper, c) })
	return min(b, calibrationBins-1)
}

// equalMass returns bins with equal numbers of outcomes, by confidence. Outcomes of the same
// confidence may fall into two bins; each is given their mean accuracy, so that the bins do not
// depend on the order of the outcomes.
func equalMass(outcomes []outcome) []Bin {
	sorted := slices.Clone(outcomes)
	slices.SortFunc(sorted, func(a, b outcome) int { return cmp.Compare(a.confidence, b.confidence) })
	for begin, end := 0, 0; begin < len(sorted); begin = end {
		right := 0.0
		for end = begin; end < len(sorted) && sorted[end].confidence == sorted[begin].confidence; end++ {
			right += sorted[end].accuracy
		}
		for i := begin; i < end; i++ {
			sorted[i].accuracy = right / float64(end-begin)
		}
	}
	bins := make([]Bin, calibrationBins)
	for b := range bins {
		members := sorted[b*len(sorted)/calibrationBins : (b+1)*len(sorted)/calibrationBins]
		for _, p := range members {
			bins[b].add(p)
		}
		if len(members) > 0 {
			bins[b].Lower, bins[b].Upper = members[0].confidence, members[len(members)-1].confidence
		}
	}
	return averaged(bins)
}

func (b *Bin) add(p outcome) {
	b.Count++
	b.Confidence += p.confidence
	b.Accuracy += p.accuracy
}

// averaged divides the sums that add made by the counts.
func averaged(bins []Bin) []Bin {
	for b := range bins {
		if count := float64(bins[b].Count); count > 0 {
			bins[b].Confidence /= count
			bins[b].Accuracy /= count
		}
	}
	return bins
}

func calibrationError(bins []Bin) float64 {
	gap, count := 0.0, 0
	for _, b := range bins {
		gap += float64(b.Count) * math.Abs(b.Accuracy-b.Confidence)
		count += b.Count
	}
	return gap / float64(count)
}
