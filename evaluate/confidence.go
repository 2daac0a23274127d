package evaluate

var (
	confidenceScore = Score{
		Name: "confidence", Title: "confidence on {in}", Format: "%.3f",
		Meaning: "The mean of the largest probability; where it exceeds the accuracy, answers are " +
			"too sure.",
		Of: func(c Case) (float64, error) { return mean(c.In.Confidence), nil },
	}
	confidenceOutScore = Score{
		Name: "confidenceOut", Title: "confidence on {out}", Format: "%.3f", Needs: NeedsOut,
		Meaning: "The mean of the largest probability on data of another kind; less is better.",
		Of:      func(c Case) (float64, error) { return mean(c.Out.Confidence), nil },
	}
)
