package report

import "fmt"

var lossRow = FigureRow{
	File: "loss", Title: "Loss",
	Caption: "The training loss step by step; of several chains, their mean.",
	Applies: func(subjects []Subject) bool {
		return !all(subjects, func(s Subject) bool { return len(s.meanLoss()) < 2 })
	},
	Draw: func(subjects []Subject) (*Figure, error) {
		var curves []Curve
		var places []int
		lowest := 1.0
		for i, s := range subjects {
			loss := s.meanLoss()
			if len(loss) < 2 {
				continue
			}
			c := Curve{Method: s.Name, Y: loss, X: make([]float64, len(loss))}
			if chains := len(s.Losses); chains > 1 {
				c.Method += fmt.Sprintf(", mean of %d chains", chains)
			}
			for j := range loss {
				c.X[j] = float64((j + 1) * max(s.LossEvery, 1))
				lowest = min(lowest, loss[j])
			}
			curves, places = append(curves, c), append(places, i)
		}
		return curvesOf(Axes{X: "step", Y: "loss, nats an image", LogY: lowest > 0}, curves, places)
	},
}

// meanLoss is the mean of the chains' losses, as far as the shortest of them goes.
func (s Subject) meanLoss() []float64 {
	if len(s.Losses) == 0 {
		return nil
	}
	length := len(s.Losses[0])
	for _, chain := range s.Losses {
		length = min(length, len(chain))
	}
	mean := make([]float64, length)
	for _, chain := range s.Losses {
		for j := range mean {
			mean[j] += chain[j] / float64(len(s.Losses))
		}
	}
	return mean
}
