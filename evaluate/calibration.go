package evaluate

import (
	"cmp"
	"math"
	"slices"
)

// CalibrationBins is the number of bins of the calibration errors and of the reliability diagram.
const CalibrationBins = 15

// Bin is one group of a reliability diagram: the examples with Lower < confidence <= Upper, how many they are, and their
// mean confidence and accuracy, both 0 when there are none. In bins of equal count, Lower and Upper are the smallest and
// the largest confidence in the bin, both included.
type Bin struct {
	Lower, Upper         float64
	Count                int
	Confidence, Accuracy float64
}

// EqualWidthBins groups examples into CalibrationBins bins of equal width over (0, 1]. It fails as Score does.
func EqualWidthBins(probabilities []float64, labels []int32, classes int) ([]Bin, error) {
	if err := checkLabelled("EqualWidthBins", probabilities, labels, classes); err != nil {
		return nil, err
	}
	return equalWidth(predict(probabilities, labels, classes)), nil
}

// EqualMassBins sorts the examples by confidence and cuts them into CalibrationBins bins whose counts differ by one at
// most. Examples of equal confidence all count with their mean correctness, so that a cut between them depends on no
// order. It fails as Score does.
func EqualMassBins(probabilities []float64, labels []int32, classes int) ([]Bin, error) {
	if err := checkLabelled("EqualMassBins", probabilities, labels, classes); err != nil {
		return nil, err
	}
	return equalMass(predict(probabilities, labels, classes)), nil
}

// prediction is what calibration needs of one example: its confidence, and 1 if it is right, 0 if wrong.
type prediction struct{ confidence, accuracy float64 }

func predict(probabilities []float64, labels []int32, classes int) []prediction {
	predictions := make([]prediction, len(labels))
	for n, label := range labels {
		best, confidence := largest(probabilities[n*classes : (n+1)*classes])
		predictions[n].confidence = confidence
		if best == int(label) {
			predictions[n].accuracy = 1
		}
	}
	return predictions
}

func equalWidth(predictions []prediction) []Bin {
	bins := make([]Bin, CalibrationBins)
	for b := range bins {
		bins[b].Lower = float64(b) / CalibrationBins
		bins[b].Upper = float64(b+1) / CalibrationBins
	}
	for _, p := range predictions {
		b, _ := slices.BinarySearchFunc(bins, p.confidence, func(bin Bin, c float64) int { return cmp.Compare(bin.Upper, c) })
		bins[min(b, CalibrationBins-1)].add(p)
	}
	return averaged(bins)
}

func equalMass(predictions []prediction) []Bin {
	sorted := slices.Clone(predictions)
	slices.SortFunc(sorted, func(a, b prediction) int { return cmp.Compare(a.confidence, b.confidence) })
	for begin, end := 0, 0; begin < len(sorted); begin = end {
		right := 0.0
		for end = begin; end < len(sorted) && sorted[end].confidence == sorted[begin].confidence; end++ {
			right += sorted[end].accuracy
		}
		for i := begin; i < end; i++ {
			sorted[i].accuracy = right / float64(end-begin)
		}
	}
	bins := make([]Bin, CalibrationBins)
	for b := range bins {
		members := sorted[b*len(sorted)/CalibrationBins : (b+1)*len(sorted)/CalibrationBins]
		for _, p := range members {
			bins[b].add(p)
		}
		if len(members) > 0 {
			bins[b].Lower, bins[b].Upper = members[0].confidence, members[len(members)-1].confidence
		}
	}
	return averaged(bins)
}

func (b *Bin) add(p prediction) {
	b.Count++
	b.Confidence += p.confidence
	b.Accuracy += p.accuracy
}

// averaged turns the sums that add leaves in the bins into means.
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
