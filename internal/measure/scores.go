package measure

import "math"

// minProbability bounds probabilities from below in logarithms, as evaluate does.
const minProbability = 1e-12

// Scores returns the mean negative log-likelihood, with weights of the classes [K] if there are
// any, and the accuracy of probabilities [n K] for labels [n].
func Scores[T float32 | float64](probabilities []T, labels []int32, weights []float64) (loss, accuracy float64) {
	k, total := len(probabilities)/len(labels), 0.0
	for i, label := range labels {
		row := probabilities[i*k:][:k]
		weight := 1.0
		if weights != nil {
			weight = weights[label]
		}
		loss -= weight * math.Log(max(float64(row[label]), minProbability))
		total += weight
		best := 0
		for class, p := range row {
			if p > row[best] {
				best = class
			}
		}
		if best == int(label) {
			accuracy++
		}
	}
	return loss / total, accuracy / float64(len(labels))
}
