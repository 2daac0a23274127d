package evaluate

var accuracyScore = Score{
	Name: "accuracy", Title: "accuracy", Format: "%.4f", Needs: NeedsLabels,
	Meaning: "The fraction of examples whose most probable class is the label.",
	Of: func(c Case) (float64, error) {
		correct, err := c.In.Correct()
		if err != nil {
			return 0, err
		}
		count := 0
		for _, right := range correct {
			if right {
				count++
			}
		}
		return float64(count) / float64(len(correct)), nil
	},
}
