package evaluate

var (
	confidenceScore = Score{
		Name: "confidence", Title: "confidence on {in}", Format: "%.3f",
		Meaning: "The mean of the largest probability. If it exceeds the accuracy, the network is " +
			"overconfident.",
		Of: func(c Case) (float64, error) { return mean(c.In.Confidence), nil },
	}
	confidenceOutScore = Score{
		Name: "confidenceOut", Title: "confidence on {out}", Format: "%.3f", Needs: NeedsOut,
		Meaning: "The mean of the largest probability on out-of-distribution data. Lower is better.",
		Of:      func(c Case) (float64, error) { return mean(c.Out.Confidence), nil },
	}
)
