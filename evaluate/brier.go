package evaluate

// brierScore is 1/N sum_n sum_k (p_nk - [k = label_n])^2 (Brier 1950), summed over the classes: in
// [0, 2].
var brierScore = Score{
	Name: "brier", Title: "Brier", Format: "%.4f", Needs: NeedsLabels,
	Meaning: "The squared distance of the probabilities from the one-hot labels, 0 to 2. Lower is better.",
	Of: func(c Case) (float64, error) {
		sum := 0.0
		for n, label := range c.In.Labels {
			for k, p := range c.In.row(n) {
				if k == int(label) {
					p--
				}
				sum += p * p
			}
		}
		return sum / float64(c.In.Len()), nil
	},
}
