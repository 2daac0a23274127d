package evaluate

var accuracyScore = Score{
	Name: "accuracy", Title: "accuracy", Format: "%.4f", Needs: NeedsLabels,
	Meaning: "The fraction of examples whose most probable class is the label.",
	Of: func(c Case) (float64, error) {
		correct, err := c.In.Correct()
		return fraction(correct), err
	},
}
