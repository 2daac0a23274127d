package evaluate

// likelihoodScore counts probabilities below 2^-149, the smallest float32, as 2^-149: a float32
// softmax cannot represent less, and its 0 must not make the mean infinite. One example costs at
// most 103.28 nats.
var likelihoodScore = Score{
	Name: "nll", Title: "NLL", Format: "%.4f", Needs: NeedsLabels,
	Meaning: "The negative log likelihood of the labels, in nats per example. Lower is better.",
	Of:      func(c Case) (float64, error) { return c.In.likelihood(), nil },
}

// likelihood returns the mean negative log likelihood of the labels.
func (p *Predictions) likelihood() float64 {
	sum := 0.0
	for n, label := range p.Labels {
		sum -= logarithm(p.row(n)[label])
	}
	return sum / float64(p.Len())
}
