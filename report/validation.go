package report

var validationRow = figureRow{
	File: "validation", Title: "Validation",
	Caption: "The negative log-likelihood on validation images while a run trained: of the average of the samples so far or, " +
		"before the first sample, of the chains together, and the mean of the chains each on its own.",
	Applies: func(subjects []Subject) bool {
		return !all(subjects, func(s Subject) bool { return len(s.ValidationSteps) < 2 })
	},
	Draw: func(subjects []Subject) (*Figure, error) {
		var curves []Curve
		var places []int
		lowest := 1.0
		for i, s := range subjects {
			if len(s.ValidationSteps) < 2 {
				continue
			}
			for j, y := range [][]float64{s.ValidationNLL, s.ValidationLoss} {
				name := s.Name + [...]string{", average", ", single chains"}[j]
				curves, places = append(curves, Curve{Method: name, X: s.ValidationSteps, Y: y}), append(places, 2*i+j)
				for _, v := range y {
					lowest = min(lowest, v)
				}
			}
		}
		return curvesOf(Axes{X: "step", Y: "NLL, nats per image", LogY: lowest > 0}, curves, places)
	},
}
