package measure

import "math"

// minProbability bounds probabilities from below in logarithms, as evaluate does.
const minProbability = 1e-12

// Scores returns the mean negative log-likelihood and the accuracy of probabilities [n K] for
// labels [n].
func Scores[T float32 | float64](probabilities []T, labels []int32) (loss, accuracy float64) {
	k := len(probabilities) / len(labels)
	for i, label := range labels {
		row := probabilities[i*k:][:k]
		loss -= math.Log(max(float64(row[label]), minProbability))
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
	n := float64(len(labels))
	return loss / n, accuracy / n
}
