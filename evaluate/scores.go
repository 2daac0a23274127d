package evaluate

import "math"

// Scores are the figures of predicted probabilities on labelled data.
type Scores struct {
	// Accuracy is the share of examples whose most probable class (the first of equals) is the label.
	Accuracy float64
	// NLL is the negative log likelihood in nats, -1/N sum_n ln p_n,label. A probability below 2^-149, the smallest
	// float32, counts as 2^-149: a float32 softmax cannot say less, and its 0 must not make the mean infinite. One
	// example thus costs at most 103.28.
	NLL float64
	// Brier is 1/N sum_n sum_k (p_nk - [k = label_n])^2, summed over the classes: in [0, 2].
	Brier float64
	// ECE is the expected calibration error sum_b |B_b|/N |accuracy_b - confidence_b| over CalibrationBins bins of equal
	// width (Guo et al. 2017); ECEEqualMass the same over bins of equal count.
	ECE, ECEEqualMass float64
	// MeanConfidence is 1/N sum_n max_k p_nk.
	MeanConfidence float64
}

// Score returns the scores of probabilities [N K] for N labels. It fails when there are no examples, when lengths
// disagree, when a row is not a distribution or a label is not below classes.
func Score(probabilities []float64, labels []int32, classes int) (Scores, error) {
	if err := checkLabelled("Score", probabilities, labels, classes); err != nil {
		return Scores{}, err
	}
	var s Scores
	for n, label := range labels {
		row := probabilities[n*classes : (n+1)*classes]
		best, confidence := largest(row)
		if best == int(label) {
			s.Accuracy++
		}
		s.MeanConfidence += confidence
		s.NLL -= math.Log(max(row[label], math.SmallestNonzeroFloat32))
		for k, p := range row {
			if k == int(label) {
				p--
			}
			s.Brier += p * p
		}
	}
	count := float64(len(labels))
	s.Accuracy /= count
	s.NLL /= count
	s.Brier /= count
	s.MeanConfidence /= count
	predictions := predict(probabilities, labels, classes)
	s.ECE = calibrationError(equalWidth(predictions))
	s.ECEEqualMass = calibrationError(equalMass(predictions))
	return s, nil
}

// Correct says for each example whether its most probable class (the first of equals) is the label. It fails as Score does.
func Correct(probabilities []float64, labels []int32, classes int) ([]bool, error) {
	if err := checkLabelled("Correct", probabilities, labels, classes); err != nil {
		return nil, err
	}
	correct := make([]bool, len(labels))
	for n, p := range predict(probabilities, labels, classes) {
		correct[n] = p.accuracy == 1
	}
	return correct, nil
}
