package export

import (
	"fmt"
	"math"
	"slices"

	"github.com/pollen-ml/pollen/bayes"
	"github.com/pollen-ml/pollen/evaluate"
)

// score is a score with a 95 % interval.
type score struct {
	title            string
	value, low, high float64
}

// normal95 is the 97.5th percentile of the normal distribution.
const normal95 = 1.959964

// scores returns the scores of the averaged predictions.
func (p *predicted) scores(answers []bayes.Answer, classes []string, level float64) []score {
	_, n, k := p.size()
	correct, covered, inside := 0, 0, 0
	likelihood, brier, size := make([]float64, n), make([]float64, n), make([]float64, n)
	for i, a := range answers {
		label := int(p.average.Labels[i])
		row := p.average.Probabilities[i*k : (i+1)*k]
		if a.Index == label {
			correct++
		}
		likelihood[i] = -math.Log(max(row[label], math.SmallestNonzeroFloat32)) // as in package evaluate
		for class, v := range row {
			if class == label {
				v--
			}
			brier[i] += v * v
		}
		if size[i] = float64(len(a.PredictionSet)); slices.Contains(a.PredictionSet, classes[label]) {
			covered++
		}
		if a.InDistribution != nil && *a.InDistribution {
			inside++
		}
	}
	all := []score{fraction("accuracy", correct, n), mean("negative log-likelihood, nats", likelihood), mean("Brier score", brier)}
	if answers[0].PredictionSet != nil {
		all = append(all, fraction(fmt.Sprintf("coverage of %g %% prediction sets", 100*level), covered, n), mean("classes in a prediction set", size))
	}
	if answers[0].InDistribution != nil {
		all = append(all, fraction("accepted as in distribution", inside, n))
	}
	return all
}

// fraction is a fraction with its interval.
func fraction(title string, count, n int) score {
	share := float64(count) / float64(n)
	low, high := evaluate.FractionInterval(share, n)
	return score{title, share, low, high}
}

// mean is the mean of values of at least 0, with the interval of its standard error, which is NaN
// for a single value.
func mean(title string, values []float64) score {
	m, standardError := evaluate.MeanAndError(values)
	half := normal95 * standardError
	return score{title, m, max(0, m-half), m + half}
}
