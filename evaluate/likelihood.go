package evaluate

import "math"

// likelihoodScore counts probabilities below 2^-149, the smallest float32, as 2^-149: a float32
// softmax cannot represent less, and its 0 must not make the mean infinite. One example costs at
// most 103.28 nats.
var likelihoodScore = Score{
	Name: "nll", Title: "NLL", Format: "%.4f", Needs: NeedsLabels,
	Meaning: "The negative log likelihood of the labels, in nats per example. Lower is better.",
	Of: func(c Case) (float64, error) {
		sum := 0.0
		for n, label := range c.In.Labels {
			sum -= math.Log(max(c.In.row(n)[label], math.SmallestNonzeroFloat32))
		}
		return sum / float64(c.In.Len()), nil
	},
}
